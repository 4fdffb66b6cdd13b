import type { GraphQLFormattedError } from "graphql";

import { DocketError, RequestError, codeOf } from "./errors.js";
import { JobEventsDocument, type EventFieldsFragment, type JobEventsSubscription } from "./generated/documents.js";
import { pause, sleep, type Retry } from "./retry.js";
import type { Connection } from "./socket.js";

export interface WatchOptions {
  /** The last event that is known already; the next one is the first to come. [0: from the first] */
  after?: number;
  signal?: AbortSignal;
}

/** Events that wait for their reader. With more, the stream is closed and taken up again when they are read. */
const bufferLimit = 512;

/** Close codes after which the same would only happen again. */
const refused = new Set([4004, 4005, 4400, 4406, 4409, 4429, 4500]);

/** Codes of errors that end a stream, and not the interest in it. */
const passing = new Set(["AUTH_UNAVAILABLE", "CANCELLED", "INTERNAL", "RATE_LIMITED", "SLOW_CONSUMER", "TOO_MANY_OPERATIONS", "TOO_MANY_SOCKETS"]);

/**
 * The events of a job, in order of number, none lost and none twice, however often the connection breaks and whichever server
 * it comes back to. Done when the job is over. Rejects with a DocketError if the server will not tell, and with the signal's
 * reason. `return()` ends it, also while a `next()` waits.
 */
export class Watch implements AsyncIterableIterator<EventFieldsFragment> {
  readonly #connection: Connection;
  readonly #jobId: string;
  readonly #retry: Retry;
  readonly #ended = new AbortController();
  #last: number;
  #queue: EventFieldsFragment[] = [];
  #waiting: { resolve: (r: IteratorResult<EventFieldsFragment, undefined>) => void; reject: (e: unknown) => void }[] = [];
  #close: (() => void) | undefined;
  #failures = 0;
  #refusals = 0;
  #paused = true; // begins with the first next()
  #over = false;
  #failure: { error: unknown } | undefined;

  /** @internal */
  constructor(connection: Connection, jobId: string, retry: Retry, options: WatchOptions) {
    const after = options.after ?? 0;
    if (!Number.isSafeInteger(after) || after < 0) {
      throw new DocketError("BAD_USER_INPUT", "after is the number of an event, or 0");
    }
    this.#connection = connection;
    this.#jobId = jobId;
    this.#retry = retry;
    this.#last = after;
    const signal = options.signal;
    if (signal?.aborted) {
      this.#finish({ error: signal.reason });
    } else if (signal) {
      signal.addEventListener("abort", () => this.#finish({ error: signal.reason }), { once: true, signal: this.#ended.signal });
    }
  }

  /** The number of the last event that came. */
  get last(): number {
    return this.#last;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<EventFieldsFragment, undefined>> {
    const event = this.#queue.shift();
    if (event) {
      return Promise.resolve({ done: false, value: event });
    }
    if (this.#over) {
      const failure = this.#failure;
      this.#failure = undefined; // told once
      return failure ? Promise.reject(failure.error) : Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (this.#paused) {
        this.#paused = false;
        this.#open();
      }
    });
  }

  return(): Promise<IteratorResult<EventFieldsFragment, undefined>> {
    this.#queue = [];
    this.#finish();
    return Promise.resolve({ done: true, value: undefined });
  }

  #open(): void {
    const watch = this;
    let current = true;
    const done = (then: () => void) => {
      if (current) {
        current = false;
        then();
      }
    };
    const request = {
      query: JobEventsDocument.toString(),
      // graphql-ws may subscribe again by itself, and reads the variables anew then.
      variables: { jobId: this.#jobId, get after() { return watch.#last; } },
    };
    let stop: () => void;
    try {
      stop = this.#connection.subscribe<JobEventsSubscription>(request, {
        next: (result) => {
          if (!current) {
            return;
          }
          const event = result.data?.jobEvents;
          if (result.errors?.length || !event) {
            done(() => this.#broken(result.errors ?? []));
          } else if (event.number > this.#last + 1) {
            done(() => this.#again()); // what is between is asked for
          } else if (event.number > this.#last) {
            this.#take(event);
          }
        },
        error: (error) => done(() => this.#broken(error)),
        complete: () => done(() => this.#finish()),
      });
    } catch (error) { // there is nothing to connect with
      this.#finish({ error });
      return;
    }
    this.#close = () => {
      current = false;
      stop();
    };
    if (!current || this.#over) {
      stop();
    }
  }

  #take(event: EventFieldsFragment): void {
    this.#last = event.number;
    this.#failures = this.#refusals = 0;
    const waiting = this.#waiting.shift();
    if (waiting) {
      waiting.resolve({ done: false, value: event });
      return;
    }
    this.#queue.push(event);
    if (this.#queue.length >= bufferLimit) {
      this.#paused = true;
      this.#stop();
    }
  }

  #broken(error: unknown): void {
    if (Array.isArray(error)) {
      const errors = error as GraphQLFormattedError[];
      const code = codeOf(errors[0]);
      // A number that the job has not come to is no better the next time.
      const resumable = errors[0]?.extensions?.["resumeAfter"] !== undefined && code !== "BAD_USER_INPUT";
      if (resumable || errors.length === 0 || (code !== undefined && passing.has(code))) {
        this.#again();
      } else {
        this.#finish({ error: new RequestError(errors, 0) });
      }
      return;
    }
    const { code, reason } = closeOf(error);
    const lived = this.#connection.lived(error);
    if (lived !== undefined) {
      this.#refusals = 0;
      if (lived >= this.#retry.capMs) {
        this.#failures = 0; // not one of a row, whose pauses grow
      }
    }
    // Credentials that were taken may expire, as often as they like. Those that are refused are asked for once more.
    const unauthenticated = code === 4401 || code === 4403;
    if (unauthenticated && lived === undefined && ++this.#refusals > 1) {
      this.#finish({ error: new DocketError("UNAUTHENTICATED", `the server closed the socket: ${code} ${reason}`) });
      return;
    }
    if (code !== undefined && refused.has(code)) {
      this.#finish({ error: new DocketError("SOCKET_CLOSED", `the server closed the socket: ${code} ${reason}`) });
      return;
    }
    this.#again();
  }

  #again(): void {
    this.#stop();
    sleep(pause(this.#failures++, this.#retry), this.#ended.signal).then(
      () => this.#open(),
      () => undefined, // over in the meantime
    );
  }

  #stop(): void {
    this.#close?.();
    this.#close = undefined;
  }

  #finish(failure?: { error: unknown }): void {
    if (this.#over) {
      return;
    }
    this.#over = true;
    this.#failure = failure;
    this.#stop();
    this.#ended.abort();
    for (const waiting of this.#waiting.splice(0)) {
      this.next().then(waiting.resolve, waiting.reject);
    }
  }
}

function closeOf(error: unknown): { code: number | undefined; reason: string } {
  const event = error as { code?: unknown; reason?: unknown } | undefined;
  return {
    code: typeof event?.code === "number" ? event.code : undefined,
    reason: typeof event?.reason === "string" ? event.reason : "",
  };
}
