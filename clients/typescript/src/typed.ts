/** A type that goes with a document, as other GraphQL tools write it; nothing at run time. */
export interface DocumentTypeDecoration<TResult, TVariables> {
  __apiType?: (variables: TVariables) => TResult;
}

/** A document: its text, or what graphql-codegen's `documentMode: "string"` makes of it. */
export type Document<TResult, TVariables> = (string | { toString(): string }) & DocumentTypeDecoration<TResult, TVariables>;
