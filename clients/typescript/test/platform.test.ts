import assert from "node:assert/strict";
import { test } from "node:test";

import { client, ok, scripted, success } from "./support.js";

// What is missing here is missing for all tests of this file, which has a process of its own.
const globals = globalThis as { WebSocket?: unknown; window?: unknown };
delete globals.WebSocket;
const request = { task: "triage", input: {} };

test("without a WebSocket only watches fail, and say what to do", { timeout: 30_000 }, async () => {
  const c = client({ fetch: scripted(ok(success())).fetch, webSocket: undefined });
  const intent = c.intent("a", request);
  await intent.submit();
  const missing = { name: "DocketError", code: "NO_WEBSOCKET", message: /option webSocket/ };
  const watch = c.watch("job_1");
  await assert.rejects(watch.next(), missing);
  assert.equal((await watch.next()).done, true, "it is over");
  await assert.rejects(intent.watch().next(), missing);
  await assert.rejects(new Promise((_, reject) => c.observe("job_1", { next: () => undefined, error: reject })), missing);
  await assert.rejects(client({ webSocket: "ws" }).watch("job_1").next(), missing);
  c.dispose();
});

const forbidden = (): unknown => {
  throw new DOMException("denied", "SecurityError");
};
for (const [how, storage] of [["is forbidden", forbidden], ["is switched off", () => null]] as const) {
  test(`in a browser whose storage ${how} nothing is sent, and the error says what to do`, async () => {
    globals.window = Object.defineProperty({}, "localStorage", { get: storage });
    const server = scripted(ok({ data: { job: null } }), ok(success()));
    const c = client({ fetch: server.fetch });
    assert.equal(await c.job("job_1"), null, "what needs no key works");
    await assert.rejects(c.intent("a", request).submit(), { name: "DocketError", code: "NO_STORAGE", message: /option storage, memoryStorage\(\)/ });
    assert.equal(server.sent.length, 1);
  });
}

test("a browser's storage is found", async () => {
  const values = new Map<string, string>();
  globals.window = {
    localStorage: {
      getItem: (k: string) => values.get(k) ?? null, setItem: (k: string, v: string) => void values.set(k, v), removeItem: (k: string) => void values.delete(k),
      key: (i: number) => [...values.keys()][i] ?? null, get length() { return values.size; },
    },
  };
  values.set('docket:intent:["bob","old"]', '{"key":"k","until":1}');
  const key = await client({}).intent("a", request).key();
  assert.equal(await client({}).intent("a", request).key(), key);
  assert.deepEqual([...values.keys()], ['docket:intent:["alice","a"]']);
});
