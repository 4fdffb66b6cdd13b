import type { GraphQLFormattedError } from "graphql";

import { DocketError, NoAnswerError, RequestError, codeOf } from "./errors.js";
import { abortable, pause, retryAfter, sleep, type Retry } from "./retry.js";

/** What is sent with every request, asked for each time, so that it may change. */
export type Headers = Readonly<Record<string, string>>;

export interface Endpoint {
  readonly url: string;
  readonly headers: () => Headers | Promise<Headers>;
  readonly fetch: typeof globalThis.fetch;
  readonly retry: Retry;
}

export interface Request {
  /** The JSON text, made once, so that each try sends the same bytes. */
  readonly body: string;
  readonly headers?: Headers;
  readonly signal?: AbortSignal | undefined;
  /** Asked before each try, with the headers that it would have. */
  readonly admit?: (headers: Headers, signal: AbortSignal) => Promise<Try<unknown>>;
}

/** What came of one try. */
export type Try<T> = { readonly data: T } | NoAnswer;

/** The server may not have seen the request, or may have answered it: only asking again tells. */
export interface NoAnswer {
  readonly why: string;
  readonly cause?: unknown;
  readonly retryAfterMs?: number | undefined;
}

/** Statuses of a server or a proxy that did not come to an answer, or asks to come again. */
const comeAgain = new Set([408, 425, 429, 502, 503, 504]);

/** Codes under which the server itself did not come to an answer. */
const transient = new Set(["CANCELLED", "INTERNAL", "RATE_LIMITED", "AUTH_UNAVAILABLE"]);

/** One request, sent once. */
export async function send<T>(to: Endpoint, r: Request): Promise<T> {
  const answer = await attempt<T>(to, r);
  if ("why" in answer) {
    throw new NoAnswerError(answer.why, answer.retryAfterMs, { cause: answer.cause });
  }
  return answer.data;
}

/** One request, sent until an answer comes. Only for what may be sent twice: a query, or a `createJob` with its key. */
export function resend<T>(to: Endpoint, r: Request): Promise<T> {
  return retried(to.retry, r.signal, () => attempt<T>(to, r));
}

/** Tries until an answer comes. Rejects with a NoAnswerError after all tries, and with the signal's reason. */
export async function retried<T>(retry: Retry, signal: AbortSignal | undefined, once: () => Promise<Try<T>>): Promise<T> {
  for (let n = 0; ; n++) {
    const answer = await once();
    if (!("why" in answer)) {
      return answer.data;
    }
    const askedMs = answer.retryAfterMs ?? 0;
    if (n + 1 >= retry.attempts || askedMs > retry.capMs) {
      throw new NoAnswerError(`${answer.why}, tried ${n + 1} times`, answer.retryAfterMs, { cause: answer.cause });
    }
    await sleep(askedMs + pause(n, retry), signal);
  }
}

/** The text of a request for a document. */
export function bodyOf(document: { toString(): string }, variables?: unknown): string {
  return JSON.stringify({ query: document.toString(), variables });
}

/** The header of that name, whatever its case. */
export function headerOf(headers: Headers, name: string): string | undefined {
  return Object.entries(headers).find(([n]) => n.toLowerCase() === name)?.[1];
}

function attempt<T>(to: Endpoint, r: Request): Promise<Try<T>> {
  return withHeaders(to, r.signal, async (headers, limit) => {
    const admitted = await r.admit?.(headers, limit);
    return admitted && "why" in admitted ? admitted : await exchange<T>(to, { ...headers, ...r.headers }, r.body, limit);
  });
}

/** One try: `use` gets the headers of now and a signal that bounds it. Rejects with the signal's reason. */
export async function withHeaders<T>(to: Endpoint, signal: AbortSignal | undefined, use: (headers: Headers, limit: AbortSignal) => Promise<Try<T>>): Promise<Try<T>> {
  signal?.throwIfAborted();
  const limit = new AbortController();
  const stop = () => limit.abort();
  const timer = setTimeout(stop, to.retry.timeoutMs);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const answer = await asked(to.headers, "headers()", limit.signal, (headers) => use(headers, limit.signal));
    if ("why" in answer) {
      signal?.throwIfAborted();
    }
    return answer;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** Asks what the application was given to ask. That it fails or takes too long is a failed try like any other: it may pass. */
export async function asked<T, R>(ask: () => T | Promise<T>, what: string, limit: AbortSignal, then: (told: T) => Promise<Try<R>>): Promise<Try<R>> {
  let told: T;
  try {
    told = await abortable((async () => await ask())(), limit);
  } catch (cause) {
    return { why: limit.aborted ? `${what} did not answer` : `${what} failed`, cause };
  }
  return await then(told);
}

/** Sends and reads. Rejects if the server refused the request. */
export async function exchange<T>(to: Endpoint, headers: Headers, body: string, signal: AbortSignal): Promise<Try<T>> {
  let status = 0;
  let askedMs: number | undefined;
  let text: string;
  try {
    const response = await to.fetch(to.url, {
      method: "POST",
      headers: { ...headers, accept: "application/graphql-response+json, application/json;q=0.9", "content-type": "application/json" },
      body,
      signal,
    });
    status = response.status;
    askedMs = retryAfter(response.headers.get("retry-after"));
    text = await response.text();
  } catch (cause) {
    return { why: "no answer came", cause };
  }
  if (comeAgain.has(status)) {
    return { why: `the answer was status ${status}`, retryAfterMs: askedMs, cause: errorsOf(parse(text)) };
  }
  return read<T>(text, status);
}

function read<T>(text: string, status: number): Try<T> {
  const body = parse(text);
  const errors = errorsOf(body);
  if (errors) {
    const code = codeOf(errors[0]);
    if (code !== undefined && transient.has(code)) {
      return { why: `the server failed (${code})`, cause: new RequestError(errors, status) };
    }
    throw new RequestError(errors, status);
  }
  if (isObject(body) && isObject(body["data"])) {
    return { data: body["data"] as T };
  }
  if (status >= 400 && status < 500) {
    throw new DocketError("BAD_RESPONSE", `the answer was status ${status} and is not GraphQL's`);
  }
  // Cut off on its way, or somebody else's page.
  return { why: status < 400 ? "the answer is not whole" : `the answer was status ${status}` };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function errorsOf(body: unknown): GraphQLFormattedError[] | undefined {
  const errors = isObject(body) ? body["errors"] : undefined;
  return Array.isArray(errors) && errors.length > 0 ? (errors as GraphQLFormattedError[]) : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
