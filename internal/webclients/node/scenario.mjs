// What every client has to do: create, replay, conflict, subscribe, and twice reconnect to another server and resume.
import assert from "node:assert/strict";

import { createJob } from "./documents.mjs";
import { startProxy } from "./proxy.mjs";

/** The servers' endpoints, one database behind them. */
export const urls = (process.env.WEBCLIENTS_URLS ?? "").split(" ");

const patience = 180_000; // far above what a wait takes, since several programs share few cores

/**
 * make(url, authorization) returns the client, made for a proxy that breaks:
 *   create(input, key)       the result of createJob; key is for the header
 *   watch(jobId, onEvent)    resolves when the server says that the stream is complete
 *   close()
 */
export async function scenario(name, make) {
  const authorization = `Bearer dev:${name}`;
  const proxy = await startProxy(urls);
  const client = await make(proxy.url, authorization);
  const other = directly(urls[1], authorization);

  const key = `${name}-${process.pid}-${Date.now()}`;
  // The simulated fax acknowledges and says no more, so the job stays open.
  const input = { idempotencyKey: key, task: "triage", input: { text: "I was charged twice." }, target: "demo/fax", fallbacks: [] };

  const created = await client.create(input, key);
  assert.equal(created.__typename, "CreateJobSuccess", JSON.stringify(created));
  assert.equal(created.replayed, false);
  const again = await client.create(input, key);
  assert.equal(again.__typename, "CreateJobSuccess", JSON.stringify(again));
  assert.equal(again.replayed, true);
  assert.equal(again.job.id, created.job.id);
  const conflict = await client.create({ ...input, input: { text: "Something else." } }, key);
  assert.equal(conflict.__typename, "IdempotencyConflict", JSON.stringify(conflict));
  assert.equal(conflict.job.id, created.job.id);

  const seen = [];
  let wake = () => {};
  const ended = client.watch(created.job.id, (event) => {
    seen.push(event);
    wake();
  });
  const until = async (what, condition) => {
    const late = setTimeout(() => wake(new Error(`waited for ${what} in vain; seen: ${JSON.stringify(seen)}`)), patience);
    while (!condition()) {
      const failed = await Promise.race([new Promise((resolve) => { wake = resolve; }), ended.then(() => new Error(`the stream ended before ${what}`))]);
      if (failed) throw failed;
    }
    clearTimeout(late);
  };
  const before = () => proxy.connections;

  await until("the fax", () => seen.some((e) => e.to === "RUNNING" && e.attempt));
  let connections = before();
  proxy.cut();
  await other(`mutation Cancel($input: CancelAttemptInput!) { cancelAttempt(input: $input) { __typename } }`,
    { input: { attemptId: seen.find((e) => e.attempt).attempt.id } });
  const heard = seen.length;
  proxy.mend(1);
  await until("what happened while it was cut off", () => seen.length > heard && seen.some((e) => e.to === "CANCELLED"));
  assert.ok(before() > connections, "it has come back by another connection");

  connections = before();
  proxy.cut();
  await other(`mutation Start($input: StartAttemptInput!) { startAttempt(input: $input) { __typename } }`,
    { input: { jobId: created.job.id, target: "demo/laser" } });
  let events;
  for (let state; state !== "SUCCEEDED";) {
    ({ job: { state, events } } = await other(`query Job($id: ID!) { job(id: $id) { state events { number } } }`, { id: created.job.id }));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  proxy.mend(0);
  await Promise.race([ended, new Promise((_, reject) => setTimeout(reject, patience, new Error("the stream does not end")).unref())]);
  assert.ok(before() > connections);

  assert.deepEqual(seen.map((e) => e.number), events.map((e) => e.number), "none lost, none twice, in order");
  assert.deepEqual(seen.map((e) => e.number), seen.map((_, i) => i + 1));
  await client.close();
  proxy.close();
  console.log(JSON.stringify({ client: name, events: seen.length, connections: before() }));
}

/** Another device of the same user, which nothing cuts off. */
function directly(url, authorization) {
  return async (query, variables) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = await response.json();
    assert.equal(errors, undefined, JSON.stringify(errors));
    return data;
  };
}

/** createJob by fetch, for clients of subscriptions alone. */
export function create(url, authorization) {
  return async (input, key) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": `"${key}"`, authorization },
      body: JSON.stringify({ query: createJob, variables: { input } }),
    });
    return (await response.json()).data.createJob;
  };
}
