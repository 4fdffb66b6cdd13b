// A program of Node.js, whose types know no browser.
import { Client, NoAnswerError, memoryStorage, webStorage, type IntentStorage, type JobEvent, type WebStorage } from "@docket-gateway/client";
import WebSocket from "ws";

const values = new Map<string, string>();
const shim: WebStorage = {
  getItem: (key) => values.get(key) ?? null,
  setItem: (key, value) => void values.set(key, value),
  removeItem: (key) => void values.delete(key),
};
const storage: IntentStorage = process.env["KEEP"] ? webStorage(shim) : memoryStorage();

export async function run(signal: AbortSignal): Promise<JobEvent[]> {
  const client = new Client({ url: "http://127.0.0.1:8080/graphql", headers: () => ({ authorization: "Bearer dev:alice" }), fetch, storage, webSocket: WebSocket });
  const intent = client.intent("a", { task: "triage", input: { text: "hello" } });
  const events: JobEvent[] = [];
  try {
    const result = await intent.submit({ signal });
    if (result.__typename === "InvalidInput") {
      throw new Error(result.issues.map((i) => i.path).join());
    }
    for await (const event of client.watch(result.job.id, { after: 0, signal })) {
      events.push(event);
    }
  } catch (error) {
    if (!(error instanceof NoAnswerError)) {
      throw error;
    }
  } finally {
    client.dispose();
  }
  return events;
}
