import text from './welcome.graphql';

// How the welcome says who one is, by the gateway's auth.mode.
const who = {
  dev: `# Without credentials you are the operator "local". To be
# somebody else, write under Headers below:
# {"Authorization": "Bearer dev:alice"}`,
  token: `# This gateway asks who you are. Write under Headers
# below, with an API key or a JWT,
# {"Authorization": "Bearer …"}
# and press "Re-fetch GraphQL schema" on the left. The
# page never stores it: after a reload, write it again.`,
};

export function createWelcome(mode) {
  const other = mode === 'dev' ? who.token : who.dev;
  return {
    query: text.replace('# WHO', who[mode]),
    // The browser may have kept the welcome of another mode.
    renew: (kept) => kept.replaceAll(other, who[mode]),
  };
}
