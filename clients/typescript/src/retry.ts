/** When what was sent without an answer is sent again. */
export interface RetryOptions {
  /** Sends in all; the first one counts. [10] */
  attempts?: number;
  /** The bound of the first pause, in milliseconds; it doubles with each one. [300] */
  baseMs?: number;
  /** The bound of every pause, in milliseconds. A `Retry-After` beyond it ends the tries. [15000] */
  capMs?: number;
  /** How long one try may take, with the asking for headers, in milliseconds. [30000] */
  timeoutMs?: number;
}

export type Retry = Required<RetryOptions>;

export function withDefaults(o: RetryOptions = {}): Retry {
  return { attempts: o.attempts ?? 10, baseMs: o.baseMs ?? 300, capMs: o.capMs ?? 15_000, timeoutMs: o.timeoutMs ?? 30_000 };
}

/** The pause before try number `n` + 1, in milliseconds: chance between half of the bound and all of it. */
export function pause(n: number, r: Retry, random: () => number = Math.random): number {
  const bound = Math.min(r.capMs, r.baseMs * 2 ** Math.min(n, 30));
  return bound / 2 + (random() * bound) / 2;
}

/** A `Retry-After` header in milliseconds from now: seconds or a date. */
export function retryAfter(value: string | null, now: number = Date.now()): number | undefined {
  if (value === null) {
    return undefined;
  }
  const text = value.trim();
  if (/^\d{1,9}$/.test(text)) {
    return Number(text) * 1000;
  }
  const at = /[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Resolves after `ms`, or rejects with the signal's reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Settles as `promise` does, or rejects with the signal's reason before that. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) {
    return promise;
  }
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) {
      stop();
    }
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
