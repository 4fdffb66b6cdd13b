import { getOperationAST } from 'graphql';
import { unauthenticated } from './notice.js';
import { createWatch } from './watch.js';

// createFetcher sends queries and mutations by POST, subscriptions by graphql-transport-ws. What stands in the Headers tab goes
// with both: into the request, or into connection_init. GraphiQL shows an Error with its stack, so none is thrown here.
export function createFetcher(notice) {
  const watch = createWatch(notice);
  return (params, { headers, documentAST } = {}) => {
    const operation = documentAST && getOperationAST(documentAST, params.operationName);
    return operation?.operation === 'subscription' ? watch(params, headers) : post(params, headers, notice);
  };
}

async function post(params, headers, notice) {
  let sent;
  try {
    sent = new Headers({
      'content-type': 'application/json',
      accept: 'application/graphql-response+json, application/json;q=0.9',
      ...headers,
    });
  } catch {
    throw { message: 'Not sent: what stands under Headers cannot be a header.' };
  }
  let response;
  try {
    response = await fetch('/graphql', { method: 'POST', headers: sent, body: JSON.stringify(params) });
  } catch {
    throw { message: 'The gateway does not answer.' };
  }
  let result;
  try {
    result = await response.json();
  } catch {
    throw { message: `The answer is not JSON: HTTP ${response.status}.` };
  }
  notice.say(response.status === 401 ? unauthenticated(headers, result.errors?.[0]?.message) : '');
  return result;
}
