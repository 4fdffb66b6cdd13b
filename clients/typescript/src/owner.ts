import { DocketError } from "./errors.js";
import { ViewerDocument, type ViewerQuery } from "./generated/documents.js";
import { asked, bodyOf, exchange, headerOf, retried, withHeaders, type Endpoint, type Headers, type Try } from "./http.js";

/** Tells who is signed in: the user of one moment is not that of the next one, in one browser and in one page. */
export class Owners {
  readonly #endpoint: Endpoint;
  readonly #given: (() => string | Promise<string>) | undefined;
  #known: { authorization: string | undefined; owner: string } | undefined;

  /** Without `given` the server is asked, once for each `Authorization`. */
  constructor(endpoint: Endpoint, given: (() => string | Promise<string>) | undefined) {
    this.#endpoint = endpoint;
    this.#given = given;
  }

  /** Who is signed in now. Rejects as `resend` does. */
  now(signal: AbortSignal | undefined): Promise<string> {
    return retried(this.#endpoint.retry, signal, () =>
      withHeaders(this.#endpoint, signal, (headers, limit) => {
        if (headerOf(headers, "authorization") === undefined) {
          this.#known = undefined; // what else says who it is cannot be seen from here
        }
        return this.#of(headers, limit);
      }),
    );
  }

  /** Rejects with OTHER_OWNER unless a request with these headers is that owner's. */
  async admit(owner: string, headers: Headers, signal: AbortSignal): Promise<Try<string>> {
    const answer = await this.#of(headers, signal);
    if ("data" in answer && answer.data !== owner) {
      throw otherOwner();
    }
    return answer;
  }

  async #of(headers: Headers, signal: AbortSignal): Promise<Try<string>> {
    if (this.#given) {
      return await asked(this.#given, "owner()", signal, (owner) => {
        if (typeof owner !== "string" || owner === "") {
          throw new DocketError("BAD_OWNER", "the option owner must say who is signed in");
        }
        return Promise.resolve({ data: owner });
      });
    }
    const authorization = headerOf(headers, "authorization");
    if (this.#known && this.#known.authorization === authorization) {
      return { data: this.#known.owner };
    }
    const answer = await exchange<ViewerQuery>(this.#endpoint, headers, bodyOf(ViewerDocument), signal);
    if ("why" in answer) {
      return answer;
    }
    const owner = answer.data.viewer.subject;
    this.#known = { authorization, owner };
    return { data: owner };
  }
}

export function otherOwner(): DocketError {
  return new DocketError("OTHER_OWNER", "the intent belongs to another user than the one who is signed in; it goes on when that one is");
}
