// Everything that the TypeScript client can ask, of a server that takes its documents alone: node trusted.mjs URL
import assert from "node:assert/strict";

import { Client, memoryStorage } from "@docket-gateway/client";
import WebSocket from "ws";

const storage = memoryStorage();
const make = () => new Client({ url: process.argv[2], headers: { authorization: "Bearer dev:trusted" }, webSocket: WebSocket, storage });
const client = make();

await assert.rejects(client.request("query Own { viewer { subject } }", {}), { code: "DOCUMENT_NOT_TRUSTED" });

// The simulated fax acknowledges and says no more, so the job stays open.
const request = { task: "triage", input: { text: "I was charged twice." }, target: "demo/fax", fallbacks: [] };
const intent = client.intent("a", request);
const { job } = await intent.submit();
assert.equal((await make().intent("a", request).submit()).replayed, true); // as after a reload: it also asks for the job

let attempt;
for await (const event of intent.watch()) {
  if (event.attempt && event.to === "RUNNING") {
    attempt = event.attempt.id;
    break;
  }
}
assert.equal((await client.cancelAttempt({ attemptId: attempt })).__typename, "CancelAttemptSuccess");
assert.equal((await client.startAttempt({ jobId: job.id, target: "demo/laser" })).__typename, "StartAttemptSuccess");
for await (const _ of client.watch(job.id));
assert.equal((await client.job(job.id)).state, "SUCCEEDED");
assert.equal((await client.jobByKey(await intent.key())).id, job.id);
assert.equal((await client.cancelJob({ jobId: job.id })).__typename, "JobFinished");
client.dispose();
