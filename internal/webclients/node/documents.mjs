// The operations of the tested clients.

export const createJob = /* GraphQL */ `
  mutation Create($input: CreateJobInput!) {
    createJob(input: $input) {
      __typename
      ... on CreateJobSuccess { replayed job { id state } }
      ... on IdempotencyConflict { code message job { id } }
      ... on InvalidInput { code message issues { path message } }
    }
  }
`;

export const jobEvents = /* GraphQL */ `
  subscription Events($jobId: ID!, $after: Int) {
    jobEvents(jobId: $jobId, after: $after) { number type from to attempt { id state } }
  }
`;
