import { CloseCode, createClient } from 'graphql-ws';
import { unauthenticated } from './notice.js';
import { createResume } from './resume.js';

const socket = new URL('/graphql', location.href);
socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';

const lifetime = 4410;
const tooManySockets = 4430;
const goingAway = 1001;
const tryAgainLater = 1013;
const refused = new Set([CloseCode.Unauthorized, CloseCode.Forbidden]);
const retryAttempts = 8; // about 40 s

// createWatch runs subscriptions. A connection that is lost is opened again; one that is refused is not, and that is said at once.
export const createWatch = (notice) => (params, headers) => ({
  subscribe(sink) {
    let over = false; // what an operation says that GraphiQL has left is not for its next one
    let connected = false;
    const resume = createResume(params);
    const end = (then) => {
      if (over) return;
      over = true;
      then();
    };
    const fail = (problem) => end(() => {
      const credentials = refused.has(problem.code);
      const text = credentials && !connected ? unauthenticated(headers, `${problem.code} ${problem.reason}`) : explain(problem, connected);
      notice.say(credentials ? text : '');
      const hint = resume.last() === undefined ? '' : ` The last event was number ${resume.last()}: go on with after: ${resume.last()}.`;
      sink.error({ message: text + hint, ...(credentials && { extensions: { code: 'UNAUTHENTICATED' } }) });
    });
    const client = createClient({
      url: socket.href,
      connectionParams: headers,
      connectionAckWaitTimeout: 10_000,
      retryAttempts,
      retryWait: (retries) => new Promise((done) => setTimeout(done, Math.random() * 300 + (retries && Math.min(8000, 500 * 2 ** retries)))),
      shouldRetry(problem) {
        const again = passing(problem, connected);
        if (again && !over) notice.say(`${reason(problem, connected)} Connecting again …`);
        return again;
      },
      on: {
        connected() {
          connected = true;
          if (!over) notice.say('');
        },
      },
    });
    const stop = client.subscribe(resume.params, {
      next(result) {
        if (over) return;
        resume.saw(result);
        sink.next(result);
      },
      error: (problem) => (Array.isArray(problem) ? end(() => sink.error(problem)) : fail(problem)),
      complete: () => end(() => sink.complete()),
    });
    return {
      unsubscribe() {
        end(() => notice.say(''));
        stop();
      },
    };
  },
});

// passing is whether the same may go well in a while.
function passing(problem, connected) {
  if (problem instanceof Error) return false; // not a connection's: an answer that is none
  if (problem.code === tooManySockets) return connected; // the lost one may still be counted
  return !refused.has(problem.code);
}

function reason({ code }, connected) {
  if (code === lifetime) return 'The connection is as old as it may become.';
  if (code === goingAway) return 'The gateway is stopping.';
  if (code === tryAgainLater) return 'The gateway cannot check credentials now.';
  return connected ? 'The connection is lost.' : 'The gateway does not answer.';
}

function explain(problem, connected) {
  const { code, reason: said } = problem;
  if (problem instanceof Error) return `The gateway's answer cannot be read: ${problem.message}`;
  if (refused.has(code)) return `The credentials have expired or were revoked (${code} ${said}). Write new ones under Headers and run it again.`;
  if (code === tooManySockets) return 'Too many sockets of yours are open at this gateway. Close some and run it again.';
  if (code >= 4000) return `The gateway has closed the connection: ${code} ${said}.`;
  return `${reason(problem, connected)} ${retryAttempts} more tries failed.`;
}
