import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

import { createJob, jobEvents } from "./documents.mjs";
import { resuming } from "./resume.mjs";
import { scenario } from "./scenario.mjs";

globalThis.WebSocket ??= WebSocket; // Apollo's link looks at it by this name

await scenario("apollo", (url, authorization) => {
  // snippet: apollo
  const socket = resuming(createClient({
    url: url.replace(/^http/, "ws"),
    connectionParams: () => ({ Authorization: authorization }),
    retryAttempts: Infinity,
    shouldRetry: () => true,
    retryWait: (retries) => new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 50 * 2 ** retries) * (0.5 + Math.random() / 2))),
  }));
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.split(
      ({ operationType }) => operationType === "subscription",
      new GraphQLWsLink(socket),
      new HttpLink({ uri: url, headers: { authorization } }),
    ),
  });

  const create = async (input, key) => {
    const { data } = await client.mutate({
      mutation: gql(createJob),
      variables: { input },
      context: { headers: { "idempotency-key": `"${key}"` } },
    });
    return data.createJob;
  };

  /** Resolves when the job is over. */
  const watch = (jobId, onEvent) => new Promise((resolve, reject) => {
    client.subscribe({ query: gql(jobEvents), variables: { jobId }, fetchPolicy: "no-cache" }).subscribe({
      next: ({ data, error }) => (error ? reject(error) : onEvent(data.jobEvents)),
      error: reject,
      complete: resolve,
    });
  });
  // end
  return { create, watch, close: () => { client.stop(); socket.dispose(); } };
});
