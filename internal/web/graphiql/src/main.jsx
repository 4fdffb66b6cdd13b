import './workers.js';
import { GraphiQL } from 'graphiql';
import { useSyncExternalStore } from 'react';
import { createRoot } from 'react-dom/client';
import 'graphiql/style.css';
import './page.css';
import { createFetcher } from './fetcher.js';
import { HistoryKeeper, history } from './history.jsx';
import { createNotice } from './notice.js';
import { storage, tidy } from './storage.js';
import { createWelcome } from './welcome.js';

const mode = document.querySelector('meta[name="docket-auth"]').content;
const welcome = createWelcome(mode);
tidy(welcome.renew);

const notice = createNotice();
const fetcher = createFetcher(notice);
const plugins = [history];

function Notice() {
  const text = useSyncExternalStore(notice.subscribe, notice.get);
  return text && <p role="status" className="docket-notice">{text}</p>;
}

createRoot(document.getElementById('graphiql')).render(
  <GraphiQL
    fetcher={fetcher}
    plugins={plugins}
    storage={storage}
    shouldPersistHeaders={false} // or its settings would offer to
    defaultQuery={welcome.query}
    defaultEditorToolsVisibility={mode === 'token' ? 'headers' : false}
  >
    <GraphiQL.Logo>Docket</GraphiQL.Logo>
    <GraphiQL.Footer><Notice /></GraphiQL.Footer>
    <HistoryKeeper />
  </GraphiQL>,
);
