import assert from "node:assert/strict";
import { test } from "node:test";

import { memoryStorage, type IntentStorage } from "../src/index.js";
import { client, job, lost, ok, scripted, status, success, there } from "./support.js";

const entry = '["alice","a"]';
const request = { task: "triage", input: { text: "hello" } };

test("one key, in the header and in the input, for every try", async () => {
  const server = scripted(lost, status(502), status(503), status(504), status(429), ok({ errors: [{ message: "x", extensions: { code: "INTERNAL" } }] }), () => new Response('{"data":{"crea'), ok(success(true)));
  const result = await client({ fetch: server.fetch }).intent("a", request).submit();
  assert.equal(result.__typename === "CreateJobSuccess" && result.replayed, true);
  assert.equal(server.sent.length, 8);
  assert.equal(new Set(server.sent.map((s) => s.body)).size, 1, "the same bytes each time");
  const first = server.sent[0];
  assert.match(first?.key ?? "", /^[0-9a-f]{32}$/);
  assert.equal(first?.header, `"${first?.key}"`);
});

test("an answer that does not come in time is asked for again", async () => {
  const never = (_: unknown, signal: AbortSignal) =>
    new Promise<Response>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  const server = scripted(never, ok(success()));
  await client({ fetch: server.fetch, retry: { baseMs: 1, timeoutMs: 20 } }).intent("a", request).submit();
  assert.equal(server.sent.length, 2);
});

test("what cannot be known after all tries leaves the intent open", async () => {
  const storage = memoryStorage();
  const down = scripted(lost);
  const c = client({ fetch: down.fetch, storage, retry: { attempts: 3, baseMs: 1 } });
  await assert.rejects(c.intent("a", request).submit(), { name: "NoAnswerError", code: "NO_ANSWER" });
  assert.equal(down.sent.length, 3);
  const up = scripted(ok(success()));
  await client({ fetch: up.fetch, storage }).intent("a", request).submit();
  assert.equal(up.sent[0]?.key, down.sent[0]?.key, "another page load, the same key");
});

test("the caller can stop it, and the intent stays open", async () => {
  const storage = memoryStorage();
  const stop = new AbortController();
  const server = scripted(() => {
    stop.abort(new Error("stopped"));
    return lost();
  }, ok(success()));
  const c = client({ fetch: server.fetch, storage });
  await assert.rejects(c.intent("a", request).submit({ signal: stop.signal }), /stopped/);
  await c.intent("a", request).submit();
  assert.equal(server.sent[1]?.key, server.sent[0]?.key);
});

test("Retry-After is kept, and not waited for beyond the cap", async () => {
  const begin = Date.now();
  const server = scripted(status(503, { "retry-after": "1" }), ok(success()));
  await client({ fetch: server.fetch, retry: { baseMs: 1, capMs: 2_000 } }).intent("a", request).submit();
  assert.ok(Date.now() - begin >= 1_000);
  const long = scripted(status(503, { "retry-after": "3600" }));
  await assert.rejects(client({ fetch: long.fetch }).intent("a", request).submit(), { code: "NO_ANSWER", retryAfterMs: 3_600_000 });
  assert.equal(long.sent.length, 1);
});

test("a refused request is not sent again", async () => {
  const refused = () => new Response(JSON.stringify({ errors: [{ message: "no", extensions: { code: "UNAUTHENTICATED" } }] }), { status: 401 });
  const server = scripted(refused);
  await assert.rejects(client({ fetch: server.fetch }).intent("a", request).submit(), { name: "RequestError", code: "UNAUTHENTICATED", status: 401 });
  await assert.rejects(client({ fetch: scripted(status(404)).fetch }).intent("a", request).submit(), { code: "BAD_RESPONSE" });
  assert.equal(server.sent.length, 1);
});

test("calls at once share one answer", async () => {
  const server = scripted(ok(success()));
  const intent = client({ fetch: server.fetch }).intent("a", request);
  const [one, two] = await Promise.all([intent.submit(), intent.submit()]);
  assert.equal(one, two);
  assert.equal(server.sent.length, 1);
});

test("intents of one name at once make one key", async () => {
  // A storage that answers late, as one over a network does.
  const values = new Map<string, string>();
  const slow: IntentStorage = {
    get: async (name) => (await Promise.resolve(), values.get(name)),
    set: async (name, value) => void (await Promise.resolve(), values.set(name, value)),
    remove: async (name) => void (await Promise.resolve(), values.delete(name)),
  };
  const c = client({ storage: slow });
  const keys = await Promise.all([1, 2, 3].map(() => c.intent("a", request).key()));
  assert.equal(new Set(keys).size, 1);
  assert.notEqual(await c.intent("b", request).key(), keys[0]);
});

test("conflict and invalid input are data, and the intent stays open", async () => {
  const storage = memoryStorage();
  const conflict = { __typename: "IdempotencyConflict", code: "IDEMPOTENCY_CONFLICT", message: "m", job };
  const invalid = { __typename: "InvalidInput", code: "INVALID_INPUT", message: "m", issues: [{ path: "/task", message: "unknown" }] };
  const server = scripted(ok({ data: { createJob: conflict } }), ok({ data: { createJob: invalid } }), ok(success()));
  const c = client({ fetch: server.fetch, storage });
  assert.deepEqual(await c.intent("a", request).submit(), conflict);
  assert.deepEqual(await c.intent("a", request).submit(), invalid);
  await c.intent("a", request).submit();
  assert.equal(new Set(server.sent.map((s) => s.key)).size, 1);
});

test("an intent is the same job after the job's end, until it is ended by hand", async () => {
  const storage = memoryStorage();
  const over = { state: "SUCCEEDED" };
  const server = scripted(ok(success(false, over)), there("job_1"), ok(success(true, over)), there("job_1"), ok(success(true, over)), ok(success()));
  const load = () => client({ fetch: server.fetch, storage }).intent("a", request); // another page load
  const first = load();
  await first.submit();
  await load().submit();
  await load().submit();
  const created = () => server.sent.filter((s) => s.operation === "CreateJob");
  assert.equal(new Set(created().map((s) => s.key)).size, 1);

  await load().end();
  const second = load();
  await second.submit();
  assert.notEqual(await second.key(), await first.key());
  await first.end();
  assert.equal(await load().key(), await second.key(), "an older intent ends no newer one");
  await second.end();
  assert.equal(storage.get(entry), undefined);
  assert.equal(await second.key(), created()[3]?.key, "an object keeps its key");
});

test("an intent that is ended while its answer is under way stays ended", async () => {
  const storage = memoryStorage();
  const server = scripted(async () => {
    await client({ storage }).intent("a", request).end(); // in another tab
    return ok(success())();
  });
  await client({ fetch: server.fetch, storage }).intent("a", request).submit();
  assert.equal(storage.get(entry), undefined);
});

test("with a key of one's own only that one is ended", async () => {
  const storage = memoryStorage();
  const c = client({ storage });
  await c.intent("a", request, { key: "order 1" }).key();
  await c.intent("a", request, { key: "order 2" }).end();
  assert.notEqual(storage.get(entry), undefined);
  await c.intent("a", request, { key: "order 1" }).end();
  assert.equal(storage.get(entry), undefined);
});

test("a key is not sent again once the server has removed its job", async () => {
  const storage = memoryStorage();
  const first = scripted(ok(success()));
  await client({ fetch: first.fetch, storage }).intent("a", request).submit();
  const gone = scripted(there(null));
  await assert.rejects(client({ fetch: gone.fetch, storage }).intent("a", request).submit(), { code: "INTENT_EXPIRED" });
  assert.deepEqual(gone.sent.map((s) => s.operation), ["IntentJob"]);
  const still = scripted(there("job_1"), ok(success(true)));
  await client({ fetch: still.fetch, storage }).intent("a", request).submit();
  assert.deepEqual(still.sent.map((s) => s.operation), ["IntentJob", "CreateJob"]);
});

test("nothing is sent if the key cannot be kept or read", async () => {
  const server = scripted(ok(success()));
  const full: IntentStorage = { get: () => null, set: () => Promise.reject(new Error("quota")), remove: () => undefined };
  await assert.rejects(client({ fetch: server.fetch, storage: full }).intent("a", request).submit(), /quota/);
  const broken: IntentStorage = { get: () => "{", set: () => undefined, remove: () => undefined };
  await assert.rejects(client({ fetch: server.fetch, storage: broken }).intent("a", request).submit(), { code: "BAD_STORAGE" });
  assert.equal(server.sent.length, 0);
});

test("a key of one's own goes as it is", async () => {
  const server = scripted(ok(success()));
  const c = client({ fetch: server.fetch });
  await c.intent("a", request, { key: 'order "1\\2"' }).submit();
  assert.equal(server.sent[0]?.key, 'order "1\\2"');
  assert.equal(server.sent[0]?.header, '"order \\"1\\\\2\\""');
  for (const key of ["", "ä", "a\n", "x".repeat(256), null as never, 5 as never]) {
    assert.throws(() => c.intent("b", request, { key }), { code: "BAD_KEY" });
  }
});

test("what changes after the intent was made is not sent", async () => {
  const server = scripted(ok(success()));
  const input = { text: "before" };
  const intent = client({ fetch: server.fetch }).intent("a", { task: "triage", input });
  input.text = "after";
  await intent.submit();
  assert.match(server.sent[0]?.body ?? "", /"text":"before"/);
});

test("other requests are sent once", async () => {
  const server = scripted(status(503, { "retry-after": "2" }));
  await assert.rejects(client({ fetch: server.fetch }).startAttempt({ jobId: "job_1" }), { name: "NoAnswerError", retryAfterMs: 2_000 });
  assert.equal(server.sent.length, 1);
  const stop = new AbortController();
  const aborting = scripted(() => {
    stop.abort(new Error("stopped"));
    return lost();
  });
  const c = client({ fetch: aborting.fetch });
  await assert.rejects(c.request<object, object>("query Viewer { viewer { subject } }", {}, { signal: stop.signal }), /stopped/);
});
