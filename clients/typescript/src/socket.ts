import { createClient, type Client as Socket } from "graphql-ws/client";

import { DocketError } from "./errors.js";
import { headerOf, withHeaders, type Endpoint, type Headers } from "./http.js";

export interface ConnectionOptions {
  readonly webSocket: unknown;
  /** In milliseconds, as ClientOptions has it. */
  readonly pingAfterMs: number;
}

/** The one WebSocket of a client, which is there while something is subscribed to. */
export class Connection {
  readonly #endpoint: Endpoint;
  readonly #options: ConnectionOptions;
  #socket: Socket | undefined;
  #acknowledgedAt: number | undefined;
  readonly #lived = new WeakMap<object, number>();

  constructor(endpoint: Endpoint, options: ConnectionOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
  }

  /** As graphql-ws does it, and without trying again. Throws NO_WEBSOCKET. */
  readonly subscribe: Socket["subscribe"] = (payload, sink) => {
    this.#socket ??= this.#make();
    return this.#socket.subscribe(payload, sink);
  };

  /**
   * For how long the server had served the connection that ended with this error, in milliseconds; undefined if it never
   * acknowledged it.
   */
  lived(error: unknown): number | undefined {
    return typeof error === "object" && error !== null ? this.#lived.get(error) : undefined;
  }

  dispose(): void {
    void this.#socket?.dispose();
  }

  /** When it is needed: who only submits needs none. */
  #make(): Socket {
    try {
      return this.#create();
    } catch (cause) {
      throw new DocketError("NO_WEBSOCKET", "there is no WebSocket here that can be used; give the option webSocket, in Node.js 20 that of the package ws", { cause });
    }
  }

  #create(): Socket {
    const { pingAfterMs, webSocket } = this.#options;
    const guard = pongGuard(pingAfterMs / 2, () => this.#socket?.terminate());
    return createClient({
      url: this.#endpoint.url.replace(/^http/, "ws"),
      webSocketImpl: webSocket,
      retryAttempts: 0, // Watch does, from the number that it is at
      connectionAckWaitTimeout: this.#endpoint.retry.timeoutMs,
      keepAlive: pingAfterMs,
      on: {
        connecting: () => {
          this.#acknowledgedAt = undefined;
        },
        connected: () => {
          this.#acknowledgedAt = performance.now();
        },
        ping: guard.ping,
        pong: guard.pong,
        closed: (event) => {
          guard.closed();
          if (this.#acknowledgedAt !== undefined && typeof event === "object" && event !== null) {
            this.#lived.set(event, performance.now() - this.#acknowledgedAt);
          }
        },
      },
      connectionParams: async () => {
        const headers = await withHeaders(this.#endpoint, undefined, (h) => Promise.resolve({ data: h }));
        if ("data" in headers) {
          return authorization(headers.data);
        }
        this.#socket?.terminate(); // an error here would close the socket late, and hit the next one
        return undefined;
      },
    });
  }
}

/** `Authorization` alone: a socket has no other headers. */
function authorization(headers: Headers): Record<string, string> | undefined {
  const value = headerOf(headers, "authorization");
  return value === undefined ? undefined : { Authorization: value };
}

/** Ends a socket whose ping is not answered in time: a dead connection would look like a quiet one. */
function pongGuard(timeoutMs: number, terminate: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    ping: (received: boolean) => {
      if (!received) {
        timer = setTimeout(terminate, timeoutMs);
      }
    },
    pong: (received: boolean) => {
      if (received) {
        clearTimeout(timer);
      }
    },
    closed: () => clearTimeout(timer),
  };
}
