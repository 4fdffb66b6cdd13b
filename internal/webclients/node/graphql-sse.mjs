import { createClient } from "graphql-sse";

import { jobEvents } from "./documents.mjs";
import { create, scenario } from "./scenario.mjs";

await scenario("graphql-sse", (url, authorization) => {
  // snippet: graphql-sse
  const client = createClient({
    url,
    headers: () => ({ authorization }),
    retryAttempts: Infinity,
    retry: (retries) => new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 50 * 2 ** retries) * (0.5 + Math.random() / 2))),
  });

  /** Resolves when the job is over. */
  const watch = (jobId, onEvent) => new Promise((resolve, reject) => {
    const variables = { jobId, after: 0 };
    let slow = false;
    // graphql-sse writes the variables anew for each connection.
    const start = () => client.subscribe({ query: jobEvents, variables }, {
      next({ data, errors }) {
        if (errors) {
          slow = errors[0].extensions?.resumeAfter !== undefined;
          if (!slow) reject(errors);
          return;
        }
        variables.after = data.jobEvents.number;
        onEvent(data.jobEvents);
      },
      error: reject,
      complete() {
        if (slow) {
          slow = false;
          start();
        } else resolve();
      },
    });
    start();
  });
  // end
  return { create: create(url, authorization), watch, close: () => client.dispose() };
});
