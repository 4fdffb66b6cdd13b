import './workers.js';
import { createGraphiQLFetcher } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import { createRoot } from 'react-dom/client';
import 'graphiql/style.css';
import './page.css';
import defaultQuery from './welcome.graphql';

const socket = new URL('/graphql', location.href);
socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';

// Queries and mutations by POST, subscriptions by graphql-transport-ws. What stands in the Headers tab goes with both: into
// the request, or into connection_init.
const fetcher = createGraphiQLFetcher({
  url: '/graphql',
  subscriptionUrl: socket.href,
  enableIncrementalDelivery: false,
});

createRoot(document.getElementById('graphiql')).render(
  <GraphiQL fetcher={fetcher} defaultQuery={defaultQuery} defaultEditorToolsVisibility={false}>
    <GraphiQL.Logo>Docket</GraphiQL.Logo>
  </GraphiQL>,
);
