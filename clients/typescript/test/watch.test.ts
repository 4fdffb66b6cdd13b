import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { memoryStorage, type JobEvent } from "../src/index.js";
import { client, ok, quick, scripted, sockets, success, there, type Subscription } from "./support.js";

async function numbers(events: AsyncIterable<JobEvent>): Promise<number[]> {
  const out: number[] = [];
  for await (const event of events) {
    out.push(event.number);
  }
  return out;
}

async function serve(t: TestContext, ...script: ((s: Subscription) => void)[]) {
  const server = await sockets(...script);
  const c = client({ url: server.url, headers: () => ({ authorization: `Bearer ${server.seen.length}` }) });
  t.after(() => {
    c.dispose();
    server.stop();
  });
  return { server, c };
}

const events = (s: Subscription, from: number, to: number) => {
  for (let n = from; n <= to; n++) {
    s.event(n);
  }
};

test("resumes by number after every way to break", async (t) => {
  const { server, c } = await serve(
    t,
    (s) => { events(s, 1, 2); s.cut(); },
    (s) => { events(s, 3, 3); s.close(1001); },
    (s) => { events(s, 4, 4); s.close(1000); },
    (s) => { events(s, 5, 6); s.error("SLOW_CONSUMER", { resumeAfter: 6 }); },
    (s) => s.error("INTERNAL"),
    (s) => { s.error("SOMETHING_NEW", { resumeAfter: 6 }); },
    (s) => s.close(4408),
    (s) => { events(s, 7, 8); s.complete(); },
  );
  assert.deepEqual(await numbers(c.watch("job_1")), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(server.seen.map((s) => s.after), [0, 2, 3, 4, 6, 6, 6, 6]);
});

test("drops what comes twice and asks for what is missing", async (t) => {
  const { server, c } = await serve(
    t,
    (s) => { events(s, 1, 3); events(s, 2, 4); s.event(6); },
    (s) => { events(s, 5, 6); s.complete(); },
  );
  assert.deepEqual(await numbers(c.watch("job_1")), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(server.seen.map((s) => s.after), [0, 4]);
});

test("begins after a number that is known", async (t) => {
  const { server, c } = await serve(t, (s) => { events(s, 8, 9); s.complete(); });
  assert.deepEqual(await numbers(c.watch("job_1", { after: 7 })), [8, 9]);
  assert.equal(server.seen[0]?.after, 7);
  assert.throws(() => c.watch("job_1", { after: -1 }), { code: "BAD_USER_INPUT" });
});

test("ends with what only happens again", { timeout: 60_000 }, async (t) => {
  const { server, c } = await serve(t, (s) => s.error("NOT_FOUND"), (s) => s.close(4400), (s) => s.error("BAD_USER_INPUT", { lastEvent: 3, resumeAfter: 3 }));
  await assert.rejects(numbers(c.watch("job_1")), { name: "RequestError", code: "NOT_FOUND" });
  await assert.rejects(numbers(c.watch("job_1")), { code: "SOCKET_CLOSED" });
  await assert.rejects(numbers(c.watch("job_1", { after: 9 })), { name: "RequestError", code: "BAD_USER_INPUT" });
  assert.equal(server.seen.length, 3);
});

test("asks for credentials anew, as often as good ones expire, also while nothing happens", async (t) => {
  const expire = (s: Subscription) => s.close(4403);
  const { server, c } = await serve(t, (s) => { s.event(1); s.close(4403); }, expire, expire, (s) => s.close(4401), expire, (s) => { s.event(2); s.complete(); });
  assert.deepEqual(await numbers(c.watch("job_1")), [1, 2]);
  assert.deepEqual(server.seen.map((s) => s.authorization), [0, 1, 2, 3, 4, 5].map((n) => `Bearer ${n}`));
});

test("gives up when credentials are refused twice in a row", async (t) => {
  const { server, c } = await serve(t, (s) => s.close(4403), (s) => { s.event(1); s.cut(); });
  server.state.refuse = [4403, 0, 4401, 0, 4403, 4403];
  const watch = c.watch("job_1");
  assert.equal((await watch.next()).value?.number, 1, "one that is taken is between each two");
  await assert.rejects(watch.next(), { code: "UNAUTHENTICATED", message: /4403 Forbidden/ });
  assert.equal(server.state.offered.length, 6);
});

test("pauses do not grow with connections that were good for long", async (t) => {
  const { c } = await serve(t, ...Array.from({ length: 8 }, () => (s: Subscription) => void setTimeout(() => s.close(4403), 30)), (s) => s.complete());
  const timers = t.mock.method(globalThis, "setTimeout");
  await numbers(c.watch("job_1"));
  const pauses = timers.mock.calls.map((call) => call.arguments[1] ?? 0).filter((ms) => ms > 0 && ms <= quick.capMs);
  assert.equal(pauses.length, 8);
  assert.ok(Math.max(...pauses) <= quick.baseMs, String(pauses));
});

test("a reader that is slow loses nothing", async (t) => {
  const last = 1500;
  const { server, c } = await serve(t, (s) => {
    events(s, s.after + 1, last);
    s.complete();
  });
  const watch = c.watch("job_1");
  const got = [(await watch.next()).value?.number];
  while (server.seen.length === 1 && watch.last < 512) { // until the buffer is full
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(watch.last < last);
  got.push(...(await numbers(watch)));
  assert.deepEqual(got, Array.from({ length: last }, (_, i) => i + 1));
  assert.ok(server.seen.length > 1);
});

test("a connection that gives no sign of life is left", async (t) => {
  const server = await sockets((s) => s.event(1), (s) => { s.event(2); s.complete(); });
  server.state.silent = true;
  const c = client({ url: server.url, pingAfterMs: 40 });
  t.after(() => { c.dispose(); server.stop(); });
  assert.deepEqual(await numbers(c.watch("job_1")), [1, 2]);
  assert.ok(server.seen.length >= 2); // more, where the machine is slow
});

test("can be ended while it waits", async (t) => {
  const { c } = await serve(t, (s) => s.event(1));
  const stop = new AbortController();
  const aborted = c.watch("job_1", { signal: stop.signal });
  await aborted.next();
  const waits = aborted.next();
  stop.abort(new Error("enough"));
  await assert.rejects(waits, /enough/);
  assert.deepEqual(await aborted.next(), { done: true, value: undefined });

  const returned = c.watch("job_1");
  await returned.next();
  const also = returned.next();
  await returned.return();
  assert.deepEqual(await also, { done: true, value: undefined });
});

test("tells a client's end from a job's", async (t) => {
  const { c } = await serve(t, (s) => s.event(1));
  const watch = c.watch("job_1");
  await watch.next();
  const waits = watch.next();
  c.dispose();
  await assert.rejects(waits, { code: "DISPOSED" });
});

test("calls back, until it is told to stop", { timeout: 60_000 }, async (t) => {
  const { server, c } = await serve(t, (s) => { events(s, 1, 2); s.cut(); }, (s) => { events(s, 3, 3); s.complete(); }, (s) => s.event(1));
  const got: (number | string)[] = [];
  await new Promise<void>((resolve, reject) => {
    c.observe("job_1", { next: (e) => got.push(e.number), error: reject, complete: resolve });
  });
  assert.deepEqual(got, [1, 2, 3]);
  const late: number[] = [];
  const first = await new Promise<() => void>((resolve) => {
    const stop = c.observe("job_1", { next: (e) => { late.push(e.number); resolve(stop); } });
  });
  first();
  server.seen[2]?.event(2);
  server.seen[2]?.event(3);
  while (server.state.completed === 0) { // the server is told, and has sent those two before it heard
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(late, [1]);
});

test("an intent's watch leaves its key, so that a reload meets the job", async (t) => {
  const server = await sockets((s) => { s.event(1); s.cut(); }, (s) => { s.event(2); s.complete(); }, (s) => { events(s, 1, 2); s.complete(); });
  const storage = memoryStorage();
  const http = scripted(ok(success()), there("job_1"), ok(success(true, { state: "SUCCEEDED" })));
  const c = client({ url: server.url, storage, fetch: http.fetch });
  t.after(() => { c.dispose(); server.stop(); });
  const intent = c.intent("a", { task: "triage", input: {} });
  await intent.submit();
  assert.deepEqual(await numbers(intent.watch()), [1, 2]);
  assert.equal(http.sent.length, 1, "what was submitted is not submitted again");
  assert.deepEqual(await numbers(c.intent("a", { task: "triage", input: {} }).watch()), [1, 2]);
  assert.equal(http.sent[2]?.key, http.sent[0]?.key);
});

test("an intent's watch tells why there is nothing to watch", async () => {
  const conflict = { __typename: "IdempotencyConflict", code: "IDEMPOTENCY_CONFLICT", message: "m", job: {} };
  const c = client({ fetch: scripted(ok({ data: { createJob: conflict } })).fetch });
  await assert.rejects(numbers(c.intent("a", { task: "triage", input: {} }).watch()), { code: "IDEMPOTENCY_CONFLICT", cause: conflict });
});
