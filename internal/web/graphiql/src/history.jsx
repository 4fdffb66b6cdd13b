import { HISTORY_PLUGIN, HistoryStore } from '@graphiql/plugin-history';
import { useGraphiQL } from '@graphiql/react';
import { useRef } from 'react';

const Items = HISTORY_PLUGIN.content;

// An item of the history has no headers and would empty the Headers tab. What stands there stays.
function History() {
  const editor = useGraphiQL((state) => state.headerEditor);
  const before = useRef('');
  return (
    <div
      onClickCapture={() => { before.current = editor?.getValue(); }}
      onClick={() => { if (editor && editor.getValue() !== before.current) editor.setValue(before.current); }}
    >
      <Items />
    </div>
  );
}

export const history = { ...HISTORY_PLUGIN, content: History };

// GraphiQL brings this for its own plugin only.
export const HistoryKeeper = () => <HistoryStore>{null}</HistoryStore>;
