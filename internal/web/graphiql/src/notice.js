// createNotice is the one line that the page says by itself, beside what the gateway answers.
export function createNotice() {
  let text = '';
  const listeners = new Set();
  return {
    get: () => text,
    say(next) {
      text = next;
      listeners.forEach((listener) => listener());
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

// unauthenticated is what to do when the gateway does not take who is asking. why is the gateway's word, if there is one.
export function unauthenticated(headers, why) {
  if (!Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'authorization')) {
    return 'This gateway asks who you are. Write {"Authorization": "Bearer …"} with an API key or a JWT under Headers, then press “Re-fetch GraphQL schema”.';
  }
  return `The credentials under Headers are refused${why ? ` (${why})` : ''}. Write others there and run it again.`;
}
