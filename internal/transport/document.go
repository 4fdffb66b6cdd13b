package transport

import "github.com/99designs/gqlgen/graphql"

// Ways to name a document that the server knows instead of sending it. The first is that of GraphQL over HTTP's appendix on
// persisted documents, which urql and graphql-codegen follow; the second is what networks for Relay often send. Apollo has
// a third one, in extensions.
const (
	documentID      = "documentId"
	shortDocumentID = "id"
)

// nameDocument leaves a document's id where Apollo puts it, extensions.persistedQuery.sha256Hash, whichever way it came. The
// short name may mean anything else in a request that says already what to execute.
func nameDocument(params *graphql.RawParams, id, short string) *problem {
	given, _ := documentOf(params)
	if id == "" && given == "" && params.Query == "" {
		id = short
	}
	switch {
	case id == "" || id == given:
		return nil
	case given != "":
		return badRequest("the request names more than one document")
	}
	if params.Extensions == nil {
		params.Extensions = map[string]any{}
	}
	params.Extensions["persistedQuery"] = map[string]any{"sha256Hash": id}
	return nil
}

func namesDocument(params *graphql.RawParams) bool {
	_, ok := documentOf(params)
	return ok
}

func documentOf(params *graphql.RawParams) (id string, ok bool) {
	persisted, _ := params.Extensions["persistedQuery"].(map[string]any)
	id, ok = persisted["sha256Hash"].(string)
	return id, ok && id != ""
}
