// The example of the client's README as a page that is loaded three times, and then by another user of that browser:
// node pageloads.mjs URL EXAMPLE
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

import { Client, webStorage } from "@docket-gateway/client";
import WebSocket from "ws";

const [url, example] = process.argv.slice(2);

const values = new Map();
const localStorage = {
  getItem: (k) => values.get(k) ?? null,
  setItem: (k, v) => void values.set(k, v),
  removeItem: (k) => void values.delete(k),
  key: (i) => [...values.keys()][i] ?? null,
  get length() { return values.size; },
};
globalThis.window = { localStorage };

const as = (user) => new Client({ url, headers: { authorization: `Bearer dev:${user}` }, webSocket: WebSocket, storage: webStorage(localStorage) });
const intent = (user) => as(user).intent("triage:message-1041", { task: "triage", input: { text: "I was charged twice, please refund me." } });
const jobs = async (user) => (await as(user).request("query Jobs { jobs { totalCount } }", {})).jobs.totalCount;

for (let load = 1; load <= 3; load++) {
  await import(`${pathToFileURL(example)}?load=${load}`);
  assert.equal(await jobs("alice"), 1, `after load ${load}`);
}

const hers = await intent("alice").submit();
assert.equal(hers.replayed, true);
const his = await intent("bob").submit();
assert.equal(his.replayed, false);
assert.notEqual(his.job.id, hers.job.id);
await intent("bob").end();
assert.equal((await intent("alice").submit()).job.id, hers.job.id, "he has ended none of hers");
assert.deepEqual([await jobs("alice"), await jobs("bob")], [1, 1]);

await intent("alice").end(); // as when she clicks for another one
assert.equal((await intent("alice").submit()).replayed, false);
assert.equal(await jobs("alice"), 2);
