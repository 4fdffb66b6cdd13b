import { Kind, getOperationAST, parse, print, visit } from 'graphql';

// createResume lets a subscription to jobEvents go on after the last event that came, if it asks for their numbers. Others begin
// anew, which is right for attemptUpdated: it tells how things are.
export function createResume(params) {
  const document = read(params.query);
  const events = document && field(getOperationAST(document, params.operationName), 'jobEvents');
  const number = field(events, 'number');
  const given = events?.arguments.find((argument) => argument.name.value === 'after');
  let last;
  return {
    last: () => last,
    saw(result) {
      if (number) last = result.data?.[key(events)]?.[key(number)] ?? last;
    },
    params: {
      ...params,
      // graphql-ws reads both anew for each connection.
      get query() {
        return last === undefined || given?.value.kind === Kind.VARIABLE ? params.query : after(document, events, last);
      },
      get variables() {
        return last === undefined || given?.value.kind !== Kind.VARIABLE ? params.variables : { ...params.variables, [given.value.name.value]: last };
      },
    },
  };
}

function read(query) {
  try {
    return parse(query);
  } catch {
    return undefined; // the gateway will say what is wrong with it
  }
}

const field = (parent, name) => parent?.selectionSet?.selections.find((s) => s.kind === Kind.FIELD && s.name.value === name);

const key = ({ alias, name }) => (alias ?? name).value;

function after(document, events, last) {
  const argument = { kind: Kind.ARGUMENT, name: { kind: Kind.NAME, value: 'after' }, value: { kind: Kind.INT, value: String(last) } };
  return print(visit(document, {
    Field: (node) => (node === events ? { ...node, arguments: [...node.arguments.filter((a) => a.name.value !== 'after'), argument] } : undefined),
  }));
}
