import assert from "node:assert/strict";
import { test } from "node:test";

import { memoryStorage, webStorage, type IntentStorage } from "../src/index.js";
import { client, ok, scripted, success } from "./support.js";

const request = { task: "triage", input: {} };
const entry = '["alice","a"]';
const day = 24 * 60 * 60 * 1000;

/** What a browser has. */
function web() {
  const values = new Map<string, string>();
  return {
    values,
    getItem: (k: string) => values.get(k) ?? null,
    setItem: (k: string, v: string) => void values.set(k, v),
    removeItem: (k: string) => void values.delete(k),
    key: (i: number) => [...values.keys()][i] ?? null,
    get length() { return values.size; },
  };
}

test("web storage is shared by name and prefix", async () => {
  const storage = web();
  const key = await client({ storage: webStorage(storage) }).intent("a", request).key();
  assert.equal(await client({ storage: webStorage(storage) }).intent("a", request).key(), key);
  assert.deepEqual([...storage.values.keys()], ['docket:intent:["alice","a"]']);
});

test("a key that is used is kept, and one that is not is forgotten in the end", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const storage = memoryStorage();
  const key = () => client({ storage, keepDays: 10 }).intent("a", request).key();
  const first = await key();
  for (let n = 0; n < 3; n++) {
    t.mock.timers.tick(9 * day);
    assert.equal(await key(), first);
  }
  t.mock.timers.tick(10 * day);
  assert.notEqual(await key(), first);
});

test("entries do not pile up, and others are left alone", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const storage = web();
  await client({ storage: webStorage(storage), owner: "bob" }).intent("old", request).key();
  storage.setItem("docket:intent:strange", "{");
  storage.setItem("other", '{"key":"k","until":1}');
  t.mock.timers.tick(89 * day);
  await client({ storage: webStorage(storage), owner: "bob" }).intent("newer", request).key();
  assert.equal(storage.length, 4);
  t.mock.timers.tick(1 * day);
  await client({ storage: webStorage(storage) }).intent("a", request).key();
  assert.deepEqual([...storage.values.keys()].sort(), ['docket:intent:["alice","a"]', 'docket:intent:["bob","newer"]', "docket:intent:strange", "other"]);
  assert.deepEqual(webStorage(storage).names?.(), ["strange", '["bob","newer"]', '["alice","a"]']);
});

test("a storage that cannot be looked through still keeps keys", async () => {
  const memory = memoryStorage();
  const storage: IntentStorage = { ...memory, names: () => Promise.reject(new Error("no")) };
  const key = await client({ storage }).intent("a", request).key();
  assert.equal(await client({ storage }).intent("a", request).key(), key);
});

test("an entry that is none is said to be unreadable, sends nothing, and can be ended", async () => {
  for (const value of [
    "{", "null", "7", '"k"', "[]", "{}", '{"key":null,"until":9e15}', '{"key":5,"until":9e15}', '{"key":"","until":9e15}', '{"key":"ä","until":9e15}',
    '{"key":"k"}', '{"key":"k","until":null}', '{"key":"k","until":"soon"}',
    '{"key":"k","until":9e15,"jobId":"job_1"}', '{"key":"k","until":9e15,"jobOwner":"alice"}', '{"key":"k","until":9e15,"jobId":7,"jobOwner":"alice"}',
    '{"key":"k","until":9e15,"jobId":"job_1","jobOwner":null}',
  ]) {
    const storage = memoryStorage();
    await storage.set(entry, value);
    const server = scripted(ok(success()));
    const intent = client({ storage, fetch: server.fetch }).intent("a", request);
    await assert.rejects(intent.submit(), { name: "DocketError", code: "BAD_STORAGE", message: /end\(\) allows a new one/ }, value);
    assert.equal(server.sent.length, 0, value);
    assert.equal(await storage.get(entry), value, "it stays for who can read it");
    await client({ storage }).intent("a", request, { key: "mine" }).end();
    await intent.submit();
    assert.equal(server.sent.length, 1, value);
    await storage.set(entry, value);
    await client({ storage }).intent("a", request).end();
    assert.equal(await storage.get(entry), undefined, value);
  }
});

test("how long keys are kept is a number of days", () => {
  for (const keepDays of [0, -1, Number.NaN, Infinity]) {
    assert.throws(() => client({ keepDays }), { code: "BAD_USER_INPUT" });
  }
});
