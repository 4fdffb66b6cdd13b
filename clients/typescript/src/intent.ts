import { DocketError } from "./errors.js";
import {
  CreateJobDocument, IntentJobDocument, type CreateJobInput, type CreateJobMutation, type EventFieldsFragment, type IntentJobQuery, type JobState,
} from "./generated/documents.js";
import { bodyOf } from "./http.js";
import { otherOwner } from "./owner.js";
import type { IntentStorage } from "./storage.js";
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
  readonly storage: IntentStorage;
  /** Runs `task` while no other one of that entry runs. */
  exclusive<T>(entry: string, task: () => Promise<T>): Promise<T>;
  /** Who is signed in. */
  owner(signal: AbortSignal | undefined): Promise<string>;
  /** Sends as that owner and nobody else. */
  resend<T>(owner: string, body: string, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<T>;
  events(jobId: string, options: WatchOptions): AsyncIterableIterator<EventFieldsFragment>;
}

/** What is kept of an open intent. */
interface Kept {
  key: string;
  /** Set once the server has told which job it is, and whose. */
  jobId?: string;
  jobOwner?: string;
}

/** An entry of the storage: whose it is, under which name, and what it holds. */
interface Entry extends Kept {
  owner: string;
}

const finished: ReadonlySet<JobState> = new Set<JobState>(["SUCCEEDED", "FAILED", "CANCELLED"]);

/**
 * One intent of a user: one key, for as often as it is submitted. It is open, and its key is kept under its name, until its
 * job is seen to be over or `end()` is called; then the same name is a new intent. An object never changes its key.
 */
export class Intent {
  readonly name: string;
  readonly #host: IntentHost;
  readonly #request: string;
  readonly #ownKey: string | undefined;
  #kept: Promise<Entry> | undefined;
  #submitting: Promise<CreateJobResult> | undefined;
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
   * under way share its answer. Rejects with a NoAnswerError when all tries are used up, with a RequestError when the server
   * refuses the request, and with the reason of `signal`; the intent stays open then.
   */
  submit(options: { signal?: AbortSignal } = {}): Promise<CreateJobResult> {
    this.#submitting ??= this.#submit(options.signal).finally(() => {
      this.#submitting = undefined;
    });
    return this.#submitting;
  }

  /**
   * Yields the events of the intent's job as `client.watch` does, and ends the intent when the job is over. Submits first, unless
   * that was done; a DocketError tells of a conflict or invalid input then, which is its `cause`.
   */
  async *watch(options: WatchOptions = {}): AsyncGenerator<EventFieldsFragment, void, undefined> {
    yield* this.#host.events(this.#jobId ?? (await this.#submitted(options.signal)), options);
    await this.end();
  }

  async #submitted(signal: AbortSignal | undefined): Promise<string> {
    const result = await this.submit(signal ? { signal } : {});
    if (result.__typename !== "CreateJobSuccess") {
      throw new DocketError(result.code, result.message, { cause: result });
    }
    return result.job.id;
  }

  /** Forgets the key: the next intent of this name is a new one. The job goes on. */
  async end(): Promise<void> {
    const kept = await this.#kept;
    const entry = this.#entryOf(kept?.owner ?? (await this.#host.owner(undefined)));
    await this.#host.exclusive(entry, async () => {
      const there = parse(await this.#host.storage.get(entry), this.name);
      if (there && (!kept || there.key === kept.key)) { // not a later intent's
        await this.#host.storage.remove(entry);
      }
    });
  }

  async #submit(signal: AbortSignal | undefined): Promise<CreateJobResult> {
    const kept = await this.#keep(signal);
    if (kept.jobId !== undefined) {
      await this.#requireJob(kept, kept.jobId, signal);
    }
    const body = `{"query":${JSON.stringify(CreateJobDocument.toString())},"variables":{"input":${withKey(this.#request, kept.key)}}}`;
    const { createJob } = await this.#host.resend<CreateJobMutation>(kept.owner, body, { "idempotency-key": quoted(kept.key) }, signal);
    if (createJob.__typename === "CreateJobSuccess") {
      this.#jobId = createJob.job.id;
      await this.#accepted(kept, createJob.job);
      if (finished.has(createJob.job.state)) {
        await this.end();
      }
    }
    return createJob;
  }

  /** The server forgets keys of jobs that it removes. To send this one then would make a second job; so would another user's. */
  async #requireJob(kept: Entry, id: string, signal: AbortSignal | undefined): Promise<void> {
    const { viewer, job } = await this.#host.resend<IntentJobQuery>(kept.owner, bodyOf(IntentJobDocument, { id }), {}, signal);
    if (viewer.subject !== kept.jobOwner) {
      throw otherOwner();
    }
    if (job === null) {
      throw new DocketError("INTENT_EXPIRED", `the job of the intent ${this.name} is not kept any more; end() allows a new one`);
    }
  }

  /** Reads the entry, or makes it. An object stays with the one that it found first. */
  async #keep(signal: AbortSignal | undefined): Promise<Entry> {
    const owner = await this.#host.owner(signal);
    this.#kept ??= this.#load(owner).catch((error: unknown) => {
      this.#kept = undefined; // the next call tries again
      throw error;
    });
    const kept = await this.#kept;
    if (kept.owner !== owner) {
      throw otherOwner();
    }
    return kept;
  }

  #load(owner: string): Promise<Entry> {
    const entry = this.#entryOf(owner);
    return this.#host.exclusive(entry, async () => {
      const there = parse(await this.#host.storage.get(entry), this.name);
      if (there && (this.#ownKey === undefined || there.key === this.#ownKey)) {
        return { ...there, owner };
      }
      const made: Kept = { key: this.#ownKey ?? randomKey() };
      await this.#host.storage.set(entry, JSON.stringify(made));
      return { ...made, owner };
    });
  }

  async #accepted(kept: Entry, job: { id: string; owner: string }): Promise<void> {
    if (kept.jobId === job.id) {
      return;
    }
    const entry = this.#entryOf(kept.owner);
    await this.#host.exclusive(entry, async () => {
      const there = parse(await this.#host.storage.get(entry), this.name);
      if (there?.key === kept.key) { // still open
        await this.#host.storage.set(entry, JSON.stringify({ ...there, jobId: job.id, jobOwner: job.owner }));
      }
    });
    kept.jobId = job.id;
    kept.jobOwner = job.owner;
  }

  /** Users of one browser share its storage, and no intent. */
  #entryOf(owner: string): string {
    return JSON.stringify([owner, this.name]);
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

function requireKey(key: string): void {
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new DocketError("BAD_KEY", "a key has 1 to 255 printable ASCII characters");
  }
}

function parse(value: string | null | undefined, name: string): Kept | undefined {
  if (value === null || value === undefined) {
    return undefined;
  }
  try {
    const kept = JSON.parse(value) as Kept;
    requireKey(kept.key);
    return kept;
  } catch (cause) {
    // Another key could make another job.
    throw new DocketError("BAD_STORAGE", `what is kept of the intent ${name} cannot be read`, { cause });
  }
}

/** crypto.randomUUID is not there on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
