// Where Monaco, the editor inside of GraphiQL, finds its workers: beside this page, never elsewhere. Imported before
// GraphiQL.
const files = { json: 'json.worker.js', graphql: 'graphql.worker.js' };

globalThis.MonacoEnvironment = {
  getWorker: (_id, label) => new Worker(`/assets/${files[label] ?? 'editor.worker.js'}`, { name: label }),
};
