import assert from "node:assert/strict";
import { test } from "node:test";

import { asking, client, job, lost, ok, scripted, sockets, success } from "./support.js";

const request = { task: "triage", input: {} };
const limited = { timeout: 30_000 };

/** An answer that is given by hand, and says whether the request was aborted. */
function byHand() {
  const state = { aborted: 0, give: () => {} };
  let asked = () => {};
  const seen = new Promise<void>((resolve) => { asked = resolve; });
  const server = scripted((_, signal) => new Promise<Response>((resolve, reject) => {
    state.give = () => resolve(ok(success())());
    signal.addEventListener("abort", () => { state.aborted++; reject(signal.reason as Error); });
    asked();
  }));
  return { ...server, state, seen };
}

test("the signal of one call is for that one alone", limited, async () => {
  const server = byHand();
  const intent = client({ fetch: server.fetch }).intent("a", request);
  const [first, second] = [new AbortController(), new AbortController()];
  const calls = [intent.submit({ signal: first.signal }), intent.submit(), intent.submit({ signal: second.signal })] as const;
  await server.seen;
  first.abort(new Error("first"));
  await assert.rejects(calls[0], /first/);
  second.abort(new Error("second"));
  await assert.rejects(calls[2], /second/);
  await assert.rejects(intent.submit({ signal: first.signal }), /first/);
  assert.equal(server.state.aborted, 0);
  server.state.give();
  assert.equal((await calls[1]).__typename, "CreateJobSuccess");
  assert.equal(server.sent.length, 1);
});

test("the last one that gives up ends the request, and the next one begins anew", limited, async () => {
  const server = byHand();
  const intent = client({ fetch: server.fetch }).intent("a", request);
  const [first, second] = [new AbortController(), new AbortController()];
  const calls = [intent.submit({ signal: first.signal }), intent.submit({ signal: second.signal })];
  await server.seen;
  first.abort(new Error("first"));
  second.abort(new Error("second"));
  const again = intent.submit();
  await assert.rejects(calls[0] as Promise<unknown>, /first/);
  await assert.rejects(calls[1] as Promise<unknown>, /second/);
  while (server.sent.length < 2) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(server.state.aborted, 1);
  server.state.give();
  assert.equal((await again).__typename, "CreateJobSuccess");
  assert.equal(server.sent[1]?.key, server.sent[0]?.key);
});

for (const [what, make] of [["headers", asking], ["owner", client]] as const) {
  test(`${what}() that hangs is stopped by the signal and by timeoutMs`, limited, async () => {
    const hang = () => new Promise<never>(() => {});
    const server = scripted(ok(success()));
    const stop = new AbortController();
    const submitting = make({ fetch: server.fetch, [what]: hang }).intent("a", request).submit({ signal: stop.signal });
    stop.abort(new Error("stopped"));
    await assert.rejects(submitting, /stopped/);
    const c = make({ fetch: server.fetch, [what]: hang, retry: { attempts: 2, baseMs: 1, timeoutMs: 10 } });
    await assert.rejects(c.intent("a", request).submit(), { name: "NoAnswerError", message: `${what}() did not answer, tried 2 times` });
    assert.equal(server.sent.length, 0);
  });

  test(`${what}() that fails is asked again`, limited, async () => {
    const server = scripted(ok({ data: { viewer: { subject: "alice" }, createJob: success().data.createJob } }));
    let fails = 3;
    const flaky = () => {
      if (fails-- > 0) {
        throw new Error("no token yet");
      }
      return (what === "owner" ? "alice" : { authorization: "Bearer alice" }) as never;
    };
    const c = make({ fetch: server.fetch, [what]: flaky });
    await c.intent("a", request).submit();
    fails = 100;
    await assert.rejects(c.intent("b", request).submit(), (error: Error) => {
      assert.equal(error.name, "NoAnswerError");
      assert.match(String(error.cause), /no token yet/);
      return true;
    });
    assert.equal(fails, 90);
  });
}

test("a watch outlives headers that fail or hang", limited, async (t) => {
  const server = await sockets((s) => { s.event(1); s.cut(); }, (s) => { s.event(2); s.complete(); });
  let asked = 0;
  const c = client({
    url: server.url, retry: { baseMs: 1, capMs: 2, timeoutMs: 500 },
    headers: () => {
      switch (++asked) {
        case 1: throw new Error("no token yet");
        case 2: return new Promise<never>(() => {});
        case 4: return Promise.reject(new Error("no token yet"));
        default: return { authorization: `Bearer ${asked}` };
      }
    },
  });
  t.after(() => { c.dispose(); server.stop(); });
  const got: number[] = [];
  for await (const event of c.watch("job_1")) {
    got.push(event.number);
  }
  assert.deepEqual(got, [1, 2]);
  assert.ok(asked >= 5);
  for (const offered of server.state.offered) {
    assert.match(offered ?? "", /^Bearer \d+$/);
  }
});

test("a request that is sent once tells why nothing was sent", limited, async () => {
  const c = client({ fetch: scripted(lost).fetch, headers: () => Promise.reject(new Error("no token")) });
  await assert.rejects(c.startAttempt({ jobId: job.id }), { name: "NoAnswerError", message: "headers() failed" });
});
