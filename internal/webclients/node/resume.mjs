// snippet: resume
/** A graphql-ws client whose subscriptions to jobEvents go on after the last event that came. */
export function resuming(socket) {
  return {
    ...socket,
    subscribe(request, sink) {
      const variables = { ...request.variables };
      let stop, stopped = false;
      const start = () => {
        // graphql-ws writes the variables anew each time it subscribes after a broken connection.
        stop = socket.subscribe({ ...request, variables }, {
          next(result) {
            variables.after = result.data?.jobEvents?.number ?? variables.after;
            sink.next(result);
          },
          error(error) {
            // The server ends a stream whose client reads too slowly, and says so: SLOW_CONSUMER.
            if (!stopped && error[0]?.extensions?.resumeAfter !== undefined) start();
            else sink.error(error);
          },
          complete: () => sink.complete(),
        });
      };
      start();
      return () => { stopped = true; stop(); };
    },
  };
}
// end
