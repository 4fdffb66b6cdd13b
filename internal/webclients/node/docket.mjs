import { Client } from "@docket-gateway/client";
import WebSocket from "ws";

import { scenario } from "./scenario.mjs";

await scenario("docket", (url, authorization) => {
  const client = new Client({
    url,
    headers: () => ({ authorization }),
    webSocket: WebSocket,
    retry: { baseMs: 20, capMs: 200 },
  });
  return {
    create: ({ idempotencyKey, ...request }) => client.intent(idempotencyKey, request, { key: idempotencyKey }).submit(),
    watch: async (jobId, onEvent) => {
      for await (const event of client.watch(jobId)) onEvent(event);
    },
    close: () => client.dispose(),
  };
});
