// A page, whose types know no Node.js.
import { Client, webStorage } from "@docket-gateway/client";

const client = new Client({ url: "/graphql", storage: webStorage(window.sessionStorage), webSocket: WebSocket, fetch: window.fetch });
const stop = client.observe("job_1", { next: (event) => console.log(event.number), complete: () => stop() });
