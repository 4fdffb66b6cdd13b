import { DocketError } from "./errors.js";
import * as documents from "./generated/documents.js";
import { bodyOf, resend, send, type Endpoint, type Headers } from "./http.js";
import { Intent, type IntentHost, type IntentOptions, type JobRequest } from "./intent.js";
import { Keys } from "./keys.js";
import { Owners } from "./owner.js";
import { withDefaults, type RetryOptions } from "./retry.js";
import { Connection } from "./socket.js";
import { defaultStorage, type IntentStorage } from "./storage.js";
import type { Document } from "./typed.js";
import { Watch, type WatchOptions } from "./watch.js";

export type Job = documents.JobFieldsFragment;
export type JobWithAttempts = NonNullable<documents.JobQuery["job"]>;
export type JobEvent = documents.EventFieldsFragment;
export type StartAttemptResult = documents.StartAttemptMutation["startAttempt"];
export type CancelAttemptResult = documents.CancelAttemptMutation["cancelAttempt"];
export type CancelJobResult = documents.CancelJobMutation["cancelJob"];

export interface ClientOptions {
  /** The endpoint: `https://docket.example/graphql`, or a path on the page's own site. */
  url: string;
  /**
   * Headers of each request, `Authorization` among them, which sockets send in `connection_init`. A function is asked each time;
   * if it fails, that was a try without an answer.
   */
  headers?: Headers | (() => Headers | Promise<Headers>);
  /**
   * Who is signed in, by any text that stays the same for a user and is nobody else's; intents of others in the same storage are
   * out of reach. A function is asked each time. [the server is asked for its `viewer`, once for each `Authorization`]
   */
  owner?: string | (() => string | Promise<string>);
  /** How long a key is kept that is not used, in days. [90] */
  keepDays?: number;
  /** Where keys of intents are kept. [localStorage in a browser, memory elsewhere] */
  storage?: IntentStorage;
  retry?: RetryOptions;
  /** [globalThis.fetch] */
  fetch?: typeof globalThis.fetch;
  /** For watches alone. [globalThis.WebSocket] Node.js 20 has none: give it that of the package `ws`. */
  webSocket?: unknown;
  /** How long a socket may be silent before it is asked for a sign of life, in milliseconds; it has half of that for it. [20000] */
  pingAfterMs?: number;
}

/** Callbacks of `observe`. */
export interface Observer {
  next(event: JobEvent): void;
  /** The server will not tell, or `signal` was aborted. */
  error?(error: unknown): void;
  /** The job is over. */
  complete?(): void;
}

/** A client of one Docket. */
export class Client {
  readonly #endpoint: Endpoint;
  readonly #connection: Connection;
  readonly #host: IntentHost;
  readonly #queues = new Map<string, Promise<unknown>>();
  readonly #disposed = new AbortController();

  constructor(options: ClientOptions) {
    const retry = withDefaults(options.retry);
    const given = options.headers ?? {};
    const headers = typeof given === "function" ? given : () => given;
    const url = typeof location === "undefined" ? options.url : new URL(options.url, location.href).href;
    this.#endpoint = { url, headers, fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)), retry };
    this.#connection = new Connection(this.#endpoint, { webSocket: options.webSocket, pingAfterMs: options.pingAfterMs ?? 20_000 });
    const storage = options.storage ?? defaultStorage();
    const who = options.owner;
    const owners = new Owners(this.#endpoint, who === undefined || typeof who === "function" ? who : () => who);
    this.#host = {
      keys: new Keys(storage, (entry, task) => this.#inOrder(entry, () => (storage.lock ? storage.lock(entry, task) : task())), options.keepDays ?? 90),
      owner: (signal) => owners.now(signal),
      resend: (owner, body, more, signal) =>
        resend(this.#endpoint, { body, headers: more, signal, admit: (headers, limit) => owners.admit(owner, headers, limit) }),
      events: (jobId, o) => this.watch(jobId, o),
    };
  }

  /**
   * An intent of the user: one job, however often it is submitted, also after a reload and after the job's end. The name says which
   * one it is, such as `triage:message-1041`; until `end()` it is the same key and the same job.
   */
  intent(name: string, request: JobRequest, options: IntentOptions = {}): Intent {
    return new Intent(this.#host, name, request, options);
  }

  /** The events of a job, see Watch. It connects with the first `next()`. */
  watch(jobId: string, options: WatchOptions = {}): Watch {
    this.#disposed.signal.throwIfAborted();
    const signals = options.signal ? [options.signal, this.#disposed.signal] : [this.#disposed.signal];
    return new Watch(this.#connection, jobId, this.#endpoint.retry, { ...options, signal: anyOf(signals) });
  }

  /** `watch` by callbacks. Returns what ends it; no callback follows then. */
  observe(jobId: string, observer: Observer, options: WatchOptions = {}): () => void {
    const watch = this.watch(jobId, options);
    let ended = false;
    void (async () => {
      try {
        for await (const event of watch) {
          if (!ended) {
            observer.next(event);
          }
        }
        if (!ended) {
          observer.complete?.();
        }
      } catch (error) {
        if (!ended) {
          observer.error?.(error);
        }
      }
    })();
    return () => {
      ended = true;
      void watch.return();
    };
  }

  /** Any other query or mutation, sent once. */
  request<TResult, TVariables extends object>(document: Document<TResult, TVariables>, variables: TVariables, options: { signal?: AbortSignal } = {}): Promise<TResult> {
    return send<TResult>(this.#endpoint, { body: bodyOf(document, variables), signal: options.signal });
  }

  /** null if there is no such job, or it is somebody else's. */
  async job(id: string, options: { signal?: AbortSignal } = {}): Promise<JobWithAttempts | null> {
    return (await this.#query(documents.JobDocument, { id }, options.signal)).job;
  }

  async jobByKey(idempotencyKey: string, options: { signal?: AbortSignal } = {}): Promise<JobWithAttempts | null> {
    return (await this.#query(documents.JobByKeyDocument, { idempotencyKey }, options.signal)).jobByKey;
  }

  /** The retry or fallback button. It has no key and is sent once: after a NoAnswerError look at the job first. */
  async startAttempt(input: documents.StartAttemptInput): Promise<StartAttemptResult> {
    return (await this.request(documents.StartAttemptDocument, { input })).startAttempt;
  }

  async cancelAttempt(input: documents.CancelAttemptInput): Promise<CancelAttemptResult> {
    return (await this.request(documents.CancelAttemptDocument, { input })).cancelAttempt;
  }

  async cancelJob(input: documents.CancelJobInput): Promise<CancelJobResult> {
    return (await this.request(documents.CancelJobDocument, { input })).cancelJob;
  }

  /** Closes the socket and ends every watch. */
  dispose(): void {
    this.#disposed.abort(new DocketError("DISPOSED", "the client was disposed of"));
    this.#connection.dispose();
  }

  #query<TResult, TVariables>(document: Document<TResult, TVariables>, variables: TVariables, signal: AbortSignal | undefined): Promise<TResult> {
    return resend<TResult>(this.#endpoint, { body: bodyOf(document, variables), signal });
  }

  /** Tasks of one name run one after the other. */
  #inOrder<T>(name: string, task: () => Promise<T>): Promise<T> {
    const result = (this.#queues.get(name) ?? Promise.resolve()).then(task);
    const settled = result.catch(() => undefined).then(() => {
      if (this.#queues.get(name) === settled) {
        this.#queues.delete(name);
      }
    });
    this.#queues.set(name, settled);
    return result;
  }
}

/** AbortSignal.any, which browsers have since 2024 only. */
function anyOf(signals: AbortSignal[]): AbortSignal {
  const any = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) {
      any.abort(signal.reason);
    }
    signal.addEventListener("abort", () => any.abort(signal.reason), { once: true, signal: any.signal });
  }
  return any.signal;
}
