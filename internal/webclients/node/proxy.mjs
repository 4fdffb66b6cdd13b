import { createServer, connect } from "node:net";

/** A TCP proxy before several servers, whose connections can be cut. */
export async function startProxy(urls) {
  const targets = urls.map((url) => new URL(url));
  const open = new Set();
  let target = targets[0];
  let cut = false;
  let connections = 0;
  const server = createServer((client) => {
    client.on("error", () => {});
    if (cut) {
      client.resetAndDestroy();
      return;
    }
    connections++;
    const upstream = connect(Number(target.port), target.hostname);
    for (const [one, other] of [[client, upstream], [upstream, client]]) {
      open.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/graphql`,
    get connections() { return connections; },
    /** Breaks every connection, and lets none in until mend. */
    cut() {
      cut = true;
      for (const socket of open) socket.resetAndDestroy();
    },
    /** Lets connections in again, to server number n. */
    mend(n) {
      target = targets[n];
      cut = false;
    },
    close() {
      this.cut();
      server.close();
    },
  };
}
