import { createClient } from "graphql-ws";
import relay from "relay-runtime";
import WebSocket from "ws";

import createMutation from "./relay/__generated__/jobCreateMutation.graphql.js"; // what relay-compiler made
import eventsSubscription from "./relay/__generated__/jobEventsSubscription.graphql.js";
import { resuming } from "./resume.mjs";
import { scenario } from "./scenario.mjs";

const { Environment, Network, Observable, RecordSource, Store, commitMutation, requestSubscription } = relay;

await scenario("relay", (url, authorization) => {
  // snippet: relay
  const socket = resuming(createClient({
    url: url.replace(/^http/, "ws"),
    webSocketImpl: WebSocket,
    connectionParams: () => ({ Authorization: authorization }),
    retryAttempts: Infinity,
    shouldRetry: () => true,
    retryWait: (retries) => new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 50 * 2 ** retries) * (0.5 + Math.random() / 2))),
  }));
  const environment = new Environment({
    store: new Store(new RecordSource()),
    network: Network.create(
      async ({ text }, variables, { metadata }) => {
        const headers = { "content-type": "application/json", authorization };
        if (metadata?.key) headers["idempotency-key"] = `"${metadata.key}"`;
        return (await fetch(url, { method: "POST", headers, body: JSON.stringify({ query: text, variables }) })).json();
      },
      ({ text, name }, variables) =>
        Observable.create((sink) => socket.subscribe({ query: text, operationName: name, variables }, sink)),
    ),
  });

  const create = (input, key) => new Promise((resolve, reject) => {
    commitMutation(environment, {
      mutation: createMutation,
      variables: { input },
      cacheConfig: { metadata: { key } },
      onCompleted: ({ createJob }, errors) => (errors ? reject(errors) : resolve(createJob)),
      onError: reject,
    });
  });

  /** Resolves when the job is over. */
  const watch = (jobId, onEvent) => new Promise((resolve, reject) => {
    requestSubscription(environment, {
      subscription: eventsSubscription,
      variables: { jobId },
      onNext: ({ jobEvents }) => onEvent(jobEvents),
      onError: reject,
      onCompleted: resolve,
    });
  });
  // end
  return { create, watch, close: () => socket.dispose() };
});
