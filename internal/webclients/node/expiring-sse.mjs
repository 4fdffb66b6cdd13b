// Watches a job with credentials that expire while it is open: expiring-sse.mjs ENDPOINT JOB, fresh ones by GET /key.
import assert from "node:assert/strict";

import { watching } from "./watch-sse.mjs";

const [endpoint, jobId] = process.argv.slice(2);
const fresh = async () => {
  const key = await (await fetch(new URL("/key", endpoint))).text();
  keys++;
  return `Bearer ${key}`;
};

let keys = 0;
const seen = [];
const { watch, close } = watching(endpoint, async () => {
  if (keys === 2) { // it has come back twice
    const response = await fetch(endpoint, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: await fresh() },
      body: JSON.stringify({ query: "mutation($input: CancelJobInput!) { cancelJob(input: $input) { __typename } }", variables: { input: { jobId } } }),
    });
    assert.equal((await response.json()).data.cancelJob.__typename, "CancelJobSuccess");
  }
  return fresh();
});
await watch(jobId, (event) => seen.push(event.number));
close();
assert.equal(keys, 4);
assert.deepEqual(seen, seen.map((_, i) => i + 1), "none lost, none twice, in order");
await assert.rejects(watching(endpoint, fresh).watch("job_01h455vb4pex5vsknk084sn02q", () => {}), (errors) => errors[0].extensions.code === "NOT_FOUND");
console.log(JSON.stringify({ events: seen.length }));
