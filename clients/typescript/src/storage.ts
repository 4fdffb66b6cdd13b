import { DocketError } from "./errors.js";

/**
 * Where the keys of intents are kept, each in an entry of its own, whose name this package makes. An error of it ends the request before anything is sent: a key that cannot be kept
 * would not be found again after a reload.
 */
export interface IntentStorage {
  get(entry: string): string | null | undefined | Promise<string | null | undefined>;
  set(entry: string, value: string): void | Promise<void>;
  remove(entry: string): void | Promise<void>;
  /** All entries, so that those which were not used for long can be removed. Without it they stay. */
  names?(): Iterable<string> | Promise<Iterable<string>>;
  /** Runs `task` while nobody else runs one of that entry, in other tabs too. Without it there is order in this client only. */
  lock?<T>(entry: string, task: () => Promise<T>): Promise<T>;
}

/** Lives as long as the client: for programs whose intents do not outlive them. */
export function memoryStorage(): IntentStorage {
  const values = new Map<string, string>();
  return {
    get: (entry) => values.get(entry),
    set: (entry, value) => void values.set(entry, value),
    remove: (entry) => void values.delete(entry),
    names: () => [...values.keys()],
  };
}

/** What `webStorage` needs of a browser's `Storage`; declared here, since programs without a browser's types use this package too. */
export interface WebStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
  /** With both of these, entries that were not used for long are found and removed. */
  readonly length?: number;
  key?(index: number): string | null;
}

/**
 * `localStorage`: keys outlive a reload and the browser, and all tabs of a site share them. `sessionStorage`: keys outlive a
 * reload, and each tab has its own.
 */
export function webStorage(storage: WebStorage, prefix = "docket:intent:"): IntentStorage {
  const kept: IntentStorage = {
    get: (entry) => storage.getItem(prefix + entry),
    set: (entry, value) => storage.setItem(prefix + entry, value),
    remove: (entry) => storage.removeItem(prefix + entry),
  };
  if (storage.key) {
    kept.names = () =>
      Array.from({ length: storage.length ?? 0 }, (_, i) => storage.key?.(i) ?? "")
        .filter((key) => key.startsWith(prefix))
        .map((key) => key.slice(prefix.length));
  }
  // Two tabs that look at once would both find nothing and make two keys.
  const locks = globalThis.navigator?.locks as LockManager | undefined;
  if (locks) {
    kept.lock = async <T>(entry: string, task: () => Promise<T>): Promise<T> => await locks.request(prefix + entry, task);
  }
  return kept;
}

/**
 * `localStorage` in a browser, memory elsewhere. Where the browser forbids it, using it rejects with NO_STORAGE: memory instead
 * would let a reload make a second job, which is for the application to choose.
 */
export function defaultStorage(): IntentStorage {
  if (typeof window === "undefined") {
    return memoryStorage();
  }
  return webStorage({
    getItem: (key) => local().getItem(key),
    setItem: (key, value) => local().setItem(key, value),
    removeItem: (key) => local().removeItem(key),
    key: (index) => local().key(index),
    get length() { return local().length; },
  });
}

/** It throws when it is looked at, or is null, where the user or the site's settings forbid it. */
function local(): Storage {
  let cause: unknown;
  try {
    const storage = window.localStorage as Storage | null;
    if (storage) {
      return storage;
    }
  } catch (error) {
    cause = error;
  }
  throw new DocketError("NO_STORAGE", "this browser keeps nothing for the page; give the option storage, memoryStorage() if a reload may make another job", { cause });
}
