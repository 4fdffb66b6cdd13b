import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

import { createJob, jobEvents } from "./documents.mjs";
import { resuming } from "./resume.mjs";
import { scenario } from "./scenario.mjs";

await scenario("urql", (url, authorization) => {
  // snippet: urql
  const socket = resuming(createClient({
    url: url.replace(/^http/, "ws"),
    webSocketImpl: WebSocket,
    connectionParams: () => ({ Authorization: authorization }),
    retryAttempts: Infinity,
    shouldRetry: () => true,
    retryWait: (retries) => new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 50 * 2 ** retries) * (0.5 + Math.random() / 2))),
  }));
  const client = new Client({
    url,
    preferGetMethod: false,
    fetchOptions: { headers: { authorization } },
    exchanges: [
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query, variables }) => ({
          subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
        }),
      }),
    ],
  });

  const create = async (input, key) => {
    const { data, error } = await client.mutation(createJob, { input }, {
      fetchOptions: { headers: { authorization, "idempotency-key": `"${key}"` } },
    });
    if (error) throw error;
    return data.createJob;
  };

  /** Resolves when the job is over. */
  const watch = (jobId, onEvent) => new Promise((resolve, reject) => {
    client.subscription(jobEvents, { jobId }).subscribe(({ data, error, hasNext }) => {
      if (error) reject(error);
      else if (data && hasNext !== false) onEvent(data.jobEvents);
      if (hasNext === false) resolve();
    });
  });
  // end
  return { create, watch, close: () => socket.dispose() };
});
