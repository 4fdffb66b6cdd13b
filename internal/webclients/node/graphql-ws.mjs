import { createClient } from "graphql-ws";
import WebSocket from "ws";

import { createJob, jobEvents } from "./documents.mjs";
import { resuming } from "./resume.mjs";
import { scenario } from "./scenario.mjs";

await scenario("graphql-ws", (url, authorization) => {
  // snippet: graphql-ws
  const socket = resuming(createClient({
    url: url.replace(/^http/, "ws"),
    webSocketImpl: WebSocket, // of the package ws, where there is no global one
    connectionParams: () => ({ Authorization: authorization }),
    retryAttempts: Infinity,
    shouldRetry: () => true, // a refused connection too, which counts as fatal by default
    retryWait: (retries) => new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 50 * 2 ** retries) * (0.5 + Math.random() / 2))),
  }));

  /** Resolves when the job is over. */
  const watch = (jobId, onEvent) => new Promise((resolve, reject) => {
    socket.subscribe({ query: jobEvents, variables: { jobId } }, {
      next: ({ data, errors }) => (errors ? reject(errors) : onEvent(data.jobEvents)),
      error: reject,
      complete: resolve,
    });
  });
  // end
  // A mutation goes over the socket too. Its key is in the input: a socket has no headers of one request.
  const once = async (query, variables) => {
    for await (const { data } of socket.iterate({ query, variables })) return data;
  };
  return {
    create: async (input) => (await once(createJob, { input })).createJob,
    watch,
    close: () => socket.dispose(),
  };
});
