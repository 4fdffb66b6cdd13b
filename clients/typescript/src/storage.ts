/**
 * Where the keys of open intents are kept. An error of it ends the request before anything is sent: a key that cannot be kept
 * would not be found again after a reload.
 */
export interface IntentStorage {
  get(name: string): string | null | undefined | Promise<string | null | undefined>;
  set(name: string, value: string): void | Promise<void>;
  remove(name: string): void | Promise<void>;
  /** Runs `task` while nobody else runs one of that name, in other tabs too. Without it there is order in this client only. */
  lock?<T>(name: string, task: () => Promise<T>): Promise<T>;
}

/** Lives as long as the client: for programs whose intents do not outlive them. */
export function memoryStorage(): IntentStorage {
  const values = new Map<string, string>();
  return {
    get: (name) => values.get(name),
    set: (name, value) => void values.set(name, value),
    remove: (name) => void values.delete(name),
  };
}

/**
 * `localStorage`: keys outlive a reload and the browser, and all tabs of a site share them. `sessionStorage`: keys outlive a
 * reload, and each tab has its own.
 */
export function webStorage(storage: Pick<Storage, "getItem" | "setItem" | "removeItem">, prefix = "docket:intent:"): IntentStorage {
  const kept: IntentStorage = {
    get: (name) => storage.getItem(prefix + name),
    set: (name, value) => storage.setItem(prefix + name, value),
    remove: (name) => storage.removeItem(prefix + name),
  };
  // Two tabs that look at once would both find nothing and make two keys.
  const locks = globalThis.navigator?.locks as LockManager | undefined;
  if (locks) {
    kept.lock = async <T>(name: string, task: () => Promise<T>): Promise<T> => await locks.request(prefix + name, task);
  }
  return kept;
}

/** `localStorage` in a browser, memory elsewhere. */
export function defaultStorage(): IntentStorage {
  return typeof window === "undefined" ? memoryStorage() : webStorage(window.localStorage);
}
