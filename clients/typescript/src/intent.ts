import { DocketError } from "./errors.js";
import {
  CreateJobDocument, IntentJobDocument, type CreateJobInput, type CreateJobMutation, type EventFieldsFragment, type IntentJobQuery,
} from "./generated/documents.js";
import { bodyOf } from "./http.js";
import { requireKey, type Keys, type Kept, type Place } from "./keys.js";
import { otherOwner } from "./owner.js";
import { Shared } from "./shared.js";
import type { WatchOptions } from "./watch.js";

/** What is asked for; the key is the intent's. */
export type JobRequest = Omit<CreateJobInput, "idempotencyKey">;

/** `CreateJobSuccess` with `replayed`, `IdempotencyConflict` or `InvalidInput`, told apart by `__typename`. */
export type CreateJobResult = CreateJobMutation["createJob"];

export interface IntentOptions {
  /** Your own key instead of one by chance, such as an order's number: 1 to 255 printable ASCII characters. */
  key?: string;
}

/** What an intent needs of its client. */
export interface IntentHost {
  readonly keys: Keys;
  /** Who is signed in. */
  owner(signal: AbortSignal | undefined): Promise<string>;
  /** Sends as that owner and nobody else. */
  resend<T>(owner: string, body: string, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<T>;
  events(jobId: string, options: WatchOptions): AsyncIterableIterator<EventFieldsFragment>;
}

/**
 * One intent of a user: one key and one job, for as often as it is submitted. The key is kept under the intent's name until `end()`
 * is called, also when the job is over; then the same name is a new intent. An object never changes its key.
 */
export class Intent {
  readonly name: string;
  readonly #host: IntentHost;
  readonly #request: string;
  readonly #ownKey: string | undefined;
  #kept: Promise<Kept & Place> | undefined;
  readonly #submitting = new Shared((signal) => this.#submit(signal));
  #jobId: string | undefined; // once the server has told

  /** @internal */
  constructor(host: IntentHost, name: string, request: JobRequest, options: IntentOptions) {
    this.name = name;
    this.#host = host;
    this.#request = JSON.stringify(request); // as it is now: a later change would be another intent
    if (options.key !== undefined) {
      requireKey(options.key);
    }
    this.#ownKey = options.key;
  }

  /** The key, made and kept by the first call. */
  async key(): Promise<string> {
    return (await this.#keep(undefined)).key;
  }

  /**
   * Makes the job, or meets it. Whatever gets lost is sent again under the same key, so a job is made once. Calls while one is
   * under way share its answer; the `signal` of one of them is for that one alone, and the last one that gives up ends it. Rejects
   * with a NoAnswerError when all tries are used up, with a RequestError when the server refuses the request, and with the reason
   * of `signal`; the key is kept then.
   */
  submit(options: { signal?: AbortSignal } = {}): Promise<CreateJobResult> {
    return this.#submitting.join(options.signal);
  }

  /**
   * Yields the events of the intent's job as `client.watch` does. Submits first, unless that was done; a DocketError tells of a
   * conflict or invalid input then, which is its `cause`.
   */
  async *watch(options: WatchOptions = {}): AsyncGenerator<EventFieldsFragment, void, undefined> {
    yield* this.#host.events(this.#jobId ?? (await this.#submitted(options.signal)), options);
  }

  async #submitted(signal: AbortSignal | undefined): Promise<string> {
    const result = await this.submit(signal ? { signal } : {});
    if (result.__typename !== "CreateJobSuccess") {
      throw new DocketError(result.code, result.message, { cause: result });
    }
    return result.job.id;
  }

  /**
   * Forgets the key: the next intent of this name is a new one. Call it when the user asks for another one, and never because a
   * page was loaded. The job goes on.
   */
  async end(): Promise<void> {
    const kept = await this.#kept;
    const owner = kept?.owner ?? (await this.#host.owner(undefined));
    await this.#host.keys.forget({ owner, name: this.name }, kept?.key ?? this.#ownKey);
  }

  async #submit(signal: AbortSignal): Promise<CreateJobResult> {
    const kept = await this.#keep(signal);
    if (kept.jobId !== undefined) {
      await this.#requireJob(kept, signal);
    }
    const body = `{"query":${JSON.stringify(CreateJobDocument.toString())},"variables":{"input":${withKey(this.#request, kept.key)}}}`;
    const { createJob } = await this.#host.resend<CreateJobMutation>(kept.owner, body, { "idempotency-key": quoted(kept.key) }, signal);
    if (createJob.__typename === "CreateJobSuccess") {
      this.#jobId = createJob.job.id;
      if (kept.jobId !== createJob.job.id) {
        await this.#host.keys.note(kept, kept.key, createJob.job);
        kept.jobId = createJob.job.id;
        kept.jobOwner = createJob.job.owner;
      }
    }
    return createJob;
  }

  /** The server forgets keys of jobs that it removes. To send this one then would make a second job; so would another user's. */
  async #requireJob(kept: Kept & Place, signal: AbortSignal): Promise<void> {
    const { viewer, job } = await this.#host.resend<IntentJobQuery>(kept.owner, bodyOf(IntentJobDocument, { id: kept.jobId }), {}, signal);
    if (viewer.subject !== kept.jobOwner) {
      throw otherOwner();
    }
    if (job === null) {
      throw new DocketError("INTENT_EXPIRED", `the job of the intent ${this.name} is not kept any more; end() allows a new one`);
    }
  }

  /** What is kept, or made. An object stays with what it found first. */
  async #keep(signal: AbortSignal | undefined): Promise<Kept & Place> {
    const owner = await this.#host.owner(signal);
    const place = { owner, name: this.name };
    this.#kept ??= this.#host.keys.take(place, this.#ownKey).then(
      (kept) => ({ ...kept, ...place }),
      (error: unknown) => {
        this.#kept = undefined; // the next call tries again
        throw error;
      },
    );
    const kept = await this.#kept;
    if (kept.owner !== owner) {
      throw otherOwner();
    }
    return kept;
  }
}

/** The request with the key as its first field; its own text stays as it is. */
function withKey(request: string, key: string): string {
  const field = `"idempotencyKey":${JSON.stringify(key)}`;
  return request === "{}" ? `{${field}}` : `{${field},${request.slice(1)}`;
}

/** A string as RFC 8941 writes it. */
function quoted(key: string): string {
  return `"${key.replace(/["\\]/g, "\\$&")}"`;
}
