import { graphql } from "relay-runtime";

// snippet: relay-documents
graphql`
  mutation jobCreateMutation($input: CreateJobInput!) {
    createJob(input: $input) {
      __typename
      ... on CreateJobSuccess { replayed job { id state } }
      ... on IdempotencyConflict { code message job { id } }
      ... on InvalidInput { code message issues { path message } }
    }
  }
`;

graphql`
  subscription jobEventsSubscription($jobId: ID!, $after: Int) {
    jobEvents(jobId: $jobId, after: $after) { number type from to attempt { id state } }
  }
`;
// end
