// One intent, from the click to the result: node examples/triage.mjs [URL]
import { Client } from "@docket-gateway/client";
import WebSocket from "ws"; // Node.js 20 has none of its own; browsers do

const client = new Client({
  url: process.argv[2] ?? "http://127.0.0.1:8080/graphql",
  headers: () => ({ authorization: "Bearer dev:alice" }),
  webSocket: WebSocket,
});

// snippet: triage
// The name says which intent it is. Until end() is called, the same name is the same key and the same job: after a reload, and
// when the job is over, too.
const intent = client.intent("triage:message-1041", {
  task: "triage",
  input: { text: "I was charged twice, please refund me." },
});

const result = await intent.submit(); // sent again under its key until an answer comes
switch (result.__typename) {
  case "CreateJobSuccess": {
    for await (const event of intent.watch()) { // whatever breaks, each event once
      console.log(event.number, event.type, event.attempt?.target ?? "", event.to ?? "");
    }
    const job = await client.job(result.job.id);
    console.log(job?.state, JSON.stringify(job?.result));
    break;
  }
  case "IdempotencyConflict":
    console.log("The key belongs to another intent, of job", result.job.id);
    break;
  case "InvalidInput":
    console.log("Nothing was made:", result.issues.map((i) => `${i.path}: ${i.message}`).join("; "));
    break;
}
// end
client.dispose();
