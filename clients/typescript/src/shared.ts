import { abortable } from "./retry.js";

/** A task that runs once for all who ask for it meanwhile. It is aborted when the last of them has given up. */
export class Shared<T> {
  readonly #task: (signal: AbortSignal) => Promise<T>;
  #run: { result: Promise<T>; stop: AbortController; waiting: number } | undefined;

  constructor(task: (signal: AbortSignal) => Promise<T>) {
    this.#task = task;
  }

  /** Rejects with the reason of `signal`, which is this caller's alone. */
  async join(signal: AbortSignal | undefined): Promise<T> {
    signal?.throwIfAborted();
    const run = (this.#run ??= this.#start());
    run.waiting++;
    try {
      return await abortable(run.result, signal);
    } finally {
      run.waiting--;
      if (run.waiting === 0) {
        run.stop.abort(); // nothing, if it is done
        if (this.#run === run) {
          this.#run = undefined;
        }
      }
    }
  }

  #start() {
    const stop = new AbortController();
    const result = this.#task(stop.signal);
    const run = { result, stop, waiting: 0 };
    result.catch(() => undefined).finally(() => {
      if (this.#run === run) {
        this.#run = undefined;
      }
    });
    return run;
  }
}
