import type { AddressInfo } from "node:net";

import { WebSocket, WebSocketServer } from "ws";

import { Client, type ClientOptions } from "../src/index.js";

/** Pauses that tests need not wait for. */
export const quick = { baseMs: 1, capMs: 20, timeoutMs: 2_000 };

export const job = {
  id: "job_1", idempotencyKey: "k", task: "triage", taskVersion: "v", target: "demo/laser", fallbacks: [], state: "QUEUED",
  version: 1, result: null, createdAt: "", updatedAt: "", keyExpiresAt: null, owner: "alice",
};

export const success = (replayed = false, more: object = {}) => ({
  data: { createJob: { __typename: "CreateJobSuccess", replayed, job: { ...job, ...more } } },
});

export interface Sent {
  key: string;
  header: string | undefined;
  authorization: string | undefined;
  body: string;
  operation: string;
}

/** A server of answers that are given in order; the last one is given again and again. */
export function scripted(...answers: ((sent: Sent, signal: AbortSignal) => Response | Promise<Response>)[]) {
  const sent: Sent[] = [];
  const fetch = async (_: unknown, init?: RequestInit) => {
    const body = String(init?.body);
    const { query, variables } = JSON.parse(body) as { query: string; variables?: { input?: { idempotencyKey?: string } } };
    const headers = new Headers(init?.headers);
    const one: Sent = {
      key: variables?.input?.idempotencyKey ?? "", header: headers.get("idempotency-key") ?? undefined,
      authorization: headers.get("authorization") ?? undefined, body,
      operation: /(?:mutation|query) (\w+)/.exec(query)?.[1] ?? "",
    };
    sent.push(one);
    const answer = answers[Math.min(sent.length, answers.length) - 1];
    if (!answer || !init?.signal) {
      throw new Error("no answer is scripted, or no signal given");
    }
    return await answer(one, init.signal);
  };
  return { sent, fetch: fetch as typeof globalThis.fetch };
}

/** The answer to whether an intent's job is still there, and who asks. */
export const there = (id: string | null, subject = "alice") => ok({ data: { viewer: { subject }, job: id === null ? null : { id } } });

export const ok = (body: unknown) => () => new Response(JSON.stringify(body));
export const status = (code: number, headers: Record<string, string> = {}) => () => new Response("<html>", { status: code, headers });
export const lost = () => Promise.reject(new TypeError("fetch failed"));

export function client(options: Partial<ClientOptions>): Client {
  return asking({ owner: "alice", ...options });
}

/** A client that asks the server who it is. */
export function asking(options: Partial<ClientOptions>): Client {
  return new Client({ url: "http://127.0.0.1:9/graphql", retry: quick, webSocket: WebSocket, ...options });
}

interface Message {
  id?: string;
  type: string;
  payload?: { variables?: { jobId: string; after: number }; Authorization?: string };
}

/** What a server does with one subscription. */
export interface Subscription {
  after: number;
  authorization: string | undefined;
  event(number: number): void;
  error(code: string, more?: object): void;
  complete(): void;
  close(code: number): void;
  /** Without a word. */
  cut(): void;
}

/** A server of sockets. `script` has one part for each subscription, in order. */
export async function sockets(...script: ((s: Subscription) => void)[]) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: true });
  await new Promise((resolve) => server.once("listening", resolve));
  const seen: Subscription[] = [];
  /** `refuse` says with which code the next connections are closed instead of being acknowledged; 0: acknowledge. */
  const state = { silent: false, completed: 0, refuse: [] as number[], offered: [] as (string | undefined)[] };
  server.on("connection", (socket) => {
    let authorization: string | undefined;
    socket.on("message", (data: Buffer) => {
      const m = JSON.parse(String(data)) as Message;
      const send = (type: string, payload?: unknown) => socket.send(JSON.stringify({ id: m.id, type, payload }));
      if (m.type === "connection_init") {
        authorization = m.payload?.Authorization;
        state.offered.push(authorization);
        const code = state.refuse.shift();
        if (code) {
          socket.close(code, "Forbidden");
          return;
        }
        socket.send(JSON.stringify({ type: "connection_ack" }));
      } else if (m.type === "ping" && !state.silent) {
        socket.send(JSON.stringify({ type: "pong" }));
      } else if (m.type === "complete") {
        state.completed++;
      } else if (m.type === "subscribe") {
        const one: Subscription = {
          after: m.payload?.variables?.after ?? 0, authorization,
          event: (number) => send("next", { data: { jobEvents: { number, type: "T", at: "", from: null, to: null, detail: null, attempt: null } } }),
          error: (code, more = {}) => send("error", [{ message: code, extensions: { code, ...more } }]),
          complete: () => send("complete"),
          close: (code) => socket.close(code, "reason"),
          cut: () => socket.terminate(),
        };
        seen.push(one);
        script[Math.min(seen.length, script.length) - 1]?.(one);
      }
    });
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`,
    seen, state,
    stop: () => {
      for (const socket of server.clients) {
        socket.terminate();
      }
      server.close();
    },
  };
}
