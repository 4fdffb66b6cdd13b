import { createClient } from "graphql-sse";

import { jobEvents } from "./documents.mjs";

/** credentials() resolves to the value of the header Authorization, for each connection anew. */
export function watching(url, credentials) {
  // snippet: graphql-sse
  const client = createClient({
    url,
    headers: async () => ({ authorization: await credentials() }),
    retryAttempts: Infinity,
    retry: (retries) => new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 500 * 2 ** retries) * (0.5 + Math.random() / 2))),
  });

  /** Resolves when the job is over. */
  const watch = (jobId, onEvent) => new Promise((resolve, reject) => {
    const variables = { jobId, after: 0 };
    let refused;
    // graphql-sse writes the variables anew for each connection.
    client.subscribe({ query: jobEvents, variables }, {
      next({ data, errors }) {
        refused = errors; // if `complete` follows; else the connection broke, and is made anew
        if (errors) return;
        variables.after = data.jobEvents.number;
        onEvent(data.jobEvents);
      },
      error: reject,
      complete: () => (refused ? reject(refused) : resolve()),
    });
  });
  // end
  return { watch, close: () => client.dispose() };
}
