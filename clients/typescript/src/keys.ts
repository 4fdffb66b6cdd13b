import { DocketError } from "./errors.js";
import type { IntentStorage } from "./storage.js";

/** What is kept of an intent. */
export interface Kept {
  key: string;
  /** When it may be forgotten, in milliseconds since 1970: long after its last use. */
  until: number;
  /** Set once the server has told which job it is, and whose. */
  jobId?: string;
  jobOwner?: string;
}

/** Whose intent it is, and which one. */
export interface Place {
  readonly owner: string;
  readonly name: string;
}

const validKey = /^[\x20-\x7e]{1,255}$/;
const dayMs = 24 * 60 * 60 * 1000;

/** The keys of intents. They stay until they are forgotten by hand, or were not used for long. */
export class Keys {
  readonly #storage: IntentStorage;
  readonly #exclusive: <T>(entry: string, task: () => Promise<T>) => Promise<T>;
  readonly #keepMs: number;
  #swept = false;

  /** `exclusive` runs a task while no other one of that entry runs. */
  constructor(storage: IntentStorage, exclusive: <T>(entry: string, task: () => Promise<T>) => Promise<T>, keepDays: number) {
    if (!(keepDays > 0 && keepDays <= 36_500)) {
      throw new DocketError("BAD_USER_INPUT", "keepDays is a number of days, more than 0 and at most 36500");
    }
    this.#storage = storage;
    this.#exclusive = exclusive;
    this.#keepMs = keepDays * dayMs;
  }

  /** What is kept there; with none, or with another key than `own`, it is made. */
  async take(place: Place, own: string | undefined): Promise<Kept> {
    const until = Date.now() + this.#keepMs;
    const entry = entryOf(place);
    let isNew = false;
    const kept = await this.#exclusive(entry, async () => {
      const there = await this.#read(entry, place.name);
      isNew = !there || (own !== undefined && there.key !== own);
      const used: Kept = there && !isNew ? { ...there, until } : { key: own ?? randomKey(), until };
      if (isNew || !there || there.until < until - dayMs / 2) { // not with each use
        await this.#storage.set(entry, JSON.stringify(used));
      }
      return used;
    });
    if (isNew) {
      await this.#sweep();
    }
    return kept;
  }

  /** Writes down which job the key belongs to, unless the key was forgotten meanwhile. */
  async note(place: Place, key: string, job: { id: string; owner: string }): Promise<void> {
    const entry = entryOf(place);
    await this.#exclusive(entry, async () => {
      const there = await this.#read(entry, place.name);
      if (there?.key === key) {
        await this.#storage.set(entry, JSON.stringify({ ...there, jobId: job.id, jobOwner: job.owner }));
      }
    });
  }

  /** Forgets what is kept there; with `key` only that one, and no later one. What cannot be read is no key of anybody's. */
  async forget(place: Place, key: string | undefined): Promise<void> {
    const entry = entryOf(place);
    await this.#exclusive(entry, async () => {
      const there = decode(await this.#storage.get(entry));
      if (key === undefined || !there || there.key === key) {
        await this.#storage.remove(entry);
      }
    });
  }

  async #read(entry: string, name: string): Promise<Kept | undefined> {
    const value = await this.#storage.get(entry);
    if (value === null || value === undefined) {
      return undefined;
    }
    const kept = decode(value);
    if (!kept) { // another key could make another job
      throw new DocketError("BAD_STORAGE", `what is kept of the intent ${name} cannot be read; end() allows a new one, which may be a second job`);
    }
    return kept.until > Date.now() ? kept : undefined;
  }

  /** Removes what was not used for long, whosever it is: it counts for none of them any more. Once, since it looks at everything. */
  async #sweep(): Promise<void> {
    if (this.#swept || !this.#storage.names) {
      return;
    }
    this.#swept = true;
    try {
      for (const entry of [...(await this.#storage.names())]) {
        if (await this.#isOld(entry)) {
          await this.#exclusive(entry, async () => {
            if (await this.#isOld(entry)) {
              await this.#storage.remove(entry);
            }
          });
        }
      }
    } catch {
      // Nothing depends on it, and the next client does it.
    }
  }

  /** What cannot be read is not old: it is not ours, or for its owner to see. */
  async #isOld(entry: string): Promise<boolean> {
    const kept = decode(await this.#storage.get(entry));
    return kept !== undefined && kept.until <= Date.now();
  }
}

export function requireKey(key: string): void {
  if (typeof key !== "string" || !validKey.test(key)) {
    throw new DocketError("BAD_KEY", "a key has 1 to 255 printable ASCII characters");
  }
}

/** Users of one browser share its storage, and no intent. */
function entryOf(place: Place): string {
  return JSON.stringify([place.owner, place.name]);
}

/** undefined if it is no entry. */
function decode(value: string | null | undefined): Kept | undefined {
  try {
    const kept: unknown = JSON.parse(value ?? "");
    return isKept(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Anything may have written it: another release, another program, a hand. */
function isKept(value: unknown): value is Kept {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const { key, until, jobId, jobOwner } = value as Record<string, unknown>;
  return (
    typeof key === "string" && validKey.test(key) && typeof until === "number" &&
    (typeof jobId === "string" ? typeof jobOwner === "string" : jobId === undefined && jobOwner === undefined)
  );
}

/** crypto.randomUUID is not there on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
