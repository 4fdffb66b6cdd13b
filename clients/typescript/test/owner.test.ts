import assert from "node:assert/strict";
import { test } from "node:test";

import { memoryStorage } from "../src/index.js";
import { asking, client, job, lost, ok, scripted, type Sent } from "./support.js";

const request = { task: "triage", input: {} };

/** A server that knows users by their credentials, and has one job for each of their keys. */
function docket() {
  const jobs = new Map<string, string>();
  return scripted((sent) => {
    const subject = /^Bearer (\w+)/.exec(sent.authorization ?? "")?.[1] ?? "nobody";
    const { variables } = JSON.parse(sent.body) as { variables?: { id?: string } };
    switch (sent.operation) {
      case "Viewer":
        return ok({ data: { viewer: { subject } } })();
      case "IntentJob": {
        const own = [...jobs].some(([of, id]) => id === variables?.id && of.startsWith(`${subject} `));
        return ok({ data: { viewer: { subject }, job: own ? { id: variables?.id } : null } })();
      }
      default: {
        const of = `${subject} ${sent.key}`;
        const replayed = jobs.has(of);
        const id = jobs.get(of) ?? `job_${jobs.size + 1}`;
        jobs.set(of, id);
        return ok({ data: { createJob: { __typename: "CreateJobSuccess", replayed, job: { ...job, id, owner: subject } } } })();
      }
    }
  });
}

const created = (sent: Sent[]) => sent.filter((s) => s.operation === "CreateJob");

/** What an intent's submit came to: the job and whether it was there. */
async function submitted(intent: { submit(): Promise<{ __typename: string }> }): Promise<[string, boolean]> {
  const result = (await intent.submit()) as unknown as { replayed: boolean; job: { id: string } };
  return [result.job.id, result.replayed];
}

test("users of one storage have intents of their own", async () => {
  const server = docket();
  const storage = memoryStorage();
  const as = (user: string) => asking({ fetch: server.fetch, storage, headers: { authorization: `Bearer ${user}` } });
  assert.deepEqual(await submitted(as("alice").intent("a", request)), ["job_1", false]);
  assert.deepEqual(await submitted(as("bob").intent("a", request)), ["job_2", false]);
  await as("bob").intent("a", request).end();
  assert.deepEqual(await submitted(as("alice").intent("a", request)), ["job_1", true], "bob ends none of hers");
  assert.deepEqual(await submitted(as("bob").intent("a", request)), ["job_3", false]);
});

test("the server is asked who it is, once for each credential", async () => {
  const server = docket();
  let token = "alice.1";
  const c = asking({ fetch: server.fetch, headers: () => ({ Authorization: `Bearer ${token}` }) });
  await c.intent("a", request).submit();
  await c.intent("b", request).submit();
  token = "alice.2";
  assert.deepEqual(await submitted(c.intent("a", request)), ["job_1", true], "another token, the same user");
  assert.deepEqual(server.sent.map((s) => s.operation), ["Viewer", "CreateJob", "CreateJob", "Viewer", "IntentJob", "CreateJob"]);
});

test("without credentials that can be seen, the server is asked each time", async () => {
  const server = docket();
  const c = asking({ fetch: server.fetch });
  await c.intent("a", request).submit();
  await c.intent("b", request).submit();
  assert.deepEqual(server.sent.map((s) => s.operation), ["Viewer", "CreateJob", "Viewer", "CreateJob"]);
});

test("who it is is asked until an answer comes", async () => {
  const known = docket();
  let first = true;
  const flaky = scripted((sent, signal) => {
    if (first) {
      first = false;
      return lost();
    }
    return known.fetch("", { body: sent.body, signal, headers: { authorization: sent.authorization ?? "" } });
  });
  const c = asking({ fetch: flaky.fetch, headers: { authorization: "Bearer alice" } });
  assert.deepEqual(await submitted(c.intent("a", request)), ["job_1", false]);
  assert.deepEqual(flaky.sent.map((s) => s.operation), ["Viewer", "Viewer", "CreateJob"]);
});

test("a key is not sent for somebody who signs in meanwhile", async () => {
  const server = docket();
  let user = "alice";
  let lose = true;
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const answer = await server.fetch(url, init);
    if (lose && String(init?.body).includes("createJob")) {
      user = "bob";
      return await lost();
    }
    return answer;
  };
  const c = asking({ fetch, headers: () => ({ authorization: `Bearer ${user}` }) });
  const intent = c.intent("a", request);
  await assert.rejects(intent.submit(), { code: "OTHER_OWNER" });
  assert.deepEqual(created(server.sent).map((s) => s.authorization), ["Bearer alice"], "sent again as nobody else");
  lose = false;
  await assert.rejects(intent.submit(), { code: "OTHER_OWNER" }, "the object is hers");
  await assert.rejects(intent.key(), { code: "OTHER_OWNER" });
  assert.deepEqual(await submitted(c.intent("a", request)), ["job_2", false]);
  user = "alice";
  assert.deepEqual(await submitted(intent), ["job_1", true]);
});

test("an owner that is given wrongly does not pass for an expired intent", async () => {
  const server = docket();
  const storage = memoryStorage();
  const as = (user: string) => client({ fetch: server.fetch, storage, owner: "everybody", headers: { authorization: `Bearer ${user}` } });
  await as("alice").intent("a", request).submit();
  const kept = await storage.get('["everybody","a"]');
  await assert.rejects(as("bob").intent("a", request).submit(), (error: Error & { code: string }) => {
    assert.equal(error.code, "OTHER_OWNER");
    assert.doesNotMatch(error.message, /end\(\)/);
    return true;
  });
  assert.equal(created(server.sent).length, 1);
  assert.equal(await storage.get('["everybody","a"]'), kept);
});

test("the owner that is given is asked for each time, and must be one", async () => {
  const server = docket();
  let user = "alice";
  const c = client({ fetch: server.fetch, owner: () => user, headers: () => ({ authorization: `Bearer ${user}` }) });
  await c.intent("a", request).submit();
  user = "bob";
  await c.intent("a", request).submit();
  assert.deepEqual(server.sent.map((s) => s.operation), ["CreateJob", "CreateJob"]);
  assert.notEqual(server.sent[0]?.key, server.sent[1]?.key);
  user = "";
  await assert.rejects(c.intent("a", request).submit(), { code: "BAD_OWNER" });
});
