// What GraphiQL may keep in this browser. Never headers: it puts them into its history whatever shouldPersistHeaders says, and
// an API key may be good for ever. A name that is not listed is not kept, so that a new GraphiQL brings none in.
const prefix = 'graphiql:';
const texts = new Set(['query', 'variables', 'theme', 'visiblePlugin', 'docExplorerFlex', 'editorFlex', 'secondaryEditorFlex']);
const lists = new Set(['queries', 'favorites', 'tabState']);

// kept is what may stay of a value, or null. change is called for every string in it.
function kept(key, value, change = (text) => text) {
  const name = key.startsWith(prefix) ? key.slice(prefix.length) : '';
  if (texts.has(name)) return change(value);
  if (!lists.has(name)) return null;
  try {
    return JSON.stringify(JSON.parse(value, (field, v) => {
      if (field === 'headers' || field === 'hash') return null; // a tab's hash is made of its text, headers included
      return typeof v === 'string' ? change(v) : v;
    }));
  } catch {
    return null; // what cannot be read cannot be looked through
  }
}

const ours = () => Object.keys(localStorage).filter((key) => key.startsWith(prefix));

// storage takes localStorage's place in GraphiQL.
export const storage = {
  getItem(key) {
    const value = localStorage.getItem(key);
    return value === null ? null : kept(key, value);
  },
  setItem(key, value) {
    const rest = kept(key, value);
    if (rest === null) localStorage.removeItem(key);
    else localStorage.setItem(key, rest);
  },
  removeItem: (key) => localStorage.removeItem(key),
  clear: () => ours().forEach((key) => localStorage.removeItem(key)),
  get length() {
    return ours().length;
  },
};

// tidy looks through what this page stored before, when it was an older one perhaps.
export function tidy(change) {
  for (const key of ours()) {
    const rest = kept(key, localStorage.getItem(key), change);
    if (rest === null) localStorage.removeItem(key);
    else localStorage.setItem(key, rest);
  }
}
