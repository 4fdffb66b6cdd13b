import type { GraphQLFormattedError } from "graphql";

/** What this package throws. `code` tells them apart; it is the server's `extensions.code` where the server said one. */
export class DocketError extends Error {
  override readonly name: string = "DocketError";
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The server refused the request: malformed, not authenticated, too much. Expected outcomes of a job are no errors. */
export class RequestError extends DocketError {
  override readonly name = "RequestError";
  readonly errors: readonly GraphQLFormattedError[];
  /** 0 on a WebSocket. */
  readonly status: number;

  constructor(errors: readonly GraphQLFormattedError[], status: number) {
    const first = errors[0];
    super(codeOf(first) ?? "BAD_RESPONSE", first?.message ?? `the server answered with status ${status}`);
    this.errors = errors;
    this.status = status;
  }
}

/**
 * No answer came, as often as it was tried, so that nobody can tell whether the job was made. The intent stays open: submit it
 * again, now or after a reload, and it meets its job.
 */
export class NoAnswerError extends DocketError {
  override readonly name = "NoAnswerError";
  /** How long the server asked to wait, in milliseconds, if it did. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number, options?: ErrorOptions) {
    super("NO_ANSWER", message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

export function codeOf(error: GraphQLFormattedError | undefined): string | undefined {
  const code = error?.extensions?.["code"];
  return typeof code === "string" ? code : undefined;
}
