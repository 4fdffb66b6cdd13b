package graph_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/documents"
	"github.com/docket-gateway/docket/internal/operation"
)

const md5OfWho = "5d41402abc4b2a76b9719d911017c592" // what Relay's ids look like

// manifest has two documents: one by its SHA-256, one by an id of the application's own.
func manifest(t *testing.T, more ...string) *documents.Set {
	t.Helper()
	all := map[string]string{hashOf(watchEvents): watchEvents, md5OfWho: who}
	for _, text := range more {
		all[hashOf(text)] = text
	}
	raw, err := json.Marshal(all)
	require.NoError(t, err)
	set, err := documents.Parse(raw)
	require.NoError(t, err)
	return set
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func trusting(t *testing.T, required bool) *bundle {
	t.Helper()
	set := manifest(t)
	return setup(t, func(o *graph.Options) { o.Documents, o.DocumentsRequired = set, required })
}

func (b *bundle) byURL(t *testing.T, parameters string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"?"+parameters, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", asAlice)
	return b.do(t, r)
}

func TestDocumentsAreNamedInEveryWayThatClientsHave(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{false, true} {
		b := trusting(t, required)
		j := b.Job(t, alice, "k")
		for name, a := range map[string]answer{
			"documentId":            b.raw(t, asAlice, `{"documentId":"`+md5OfWho+`"}`),
			"id, as for Relay":      b.raw(t, asAlice, `{"id":"`+md5OfWho+`","variables":{}}`),
			"Apollo":                b.raw(t, asAlice, `{"operationName":null,"variables":{},"extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+md5OfWho+`"}}}`),
			"all at once":           b.raw(t, asAlice, `{"documentId":"`+md5OfWho+`","id":"`+md5OfWho+`","extensions":{"persistedQuery":{"sha256Hash":"`+md5OfWho+`"}}}`),
			"another id beside it":  b.raw(t, asAlice, `{"documentId":"`+md5OfWho+`","id":"other"}`),
			"an id of the client's": b.raw(t, asAlice, `{"query":"`+who+`","id":7}`),
			"query is null":         b.raw(t, asAlice, `{"query":null,"documentId":"`+md5OfWho+`"}`),
			"with its text, as APQ": b.raw(t, asAlice, `{"query":"`+who+`","extensions":{"persistedQuery":{"sha256Hash":"`+md5OfWho+`"}}}`),
			"its text alone":        b.raw(t, asAlice, `{"query":"`+who+`"}`),
			"GET, documentId":       b.byURL(t, "documentId="+md5OfWho),
			"GET, Apollo":           b.byURL(t, "extensions="+url.QueryEscape(`{"persistedQuery":{"version":1,"sha256Hash":"`+md5OfWho+`"}}`)),
		} {
			require.Equal(t, "alice", a.at(t, "viewer", "subject"), name)
		}
		id := "sha256:" + hashOf(watchEvents)
		s := b.open(t, asAlice)
		s.send(`{"id":"1","type":"subscribe","payload":{"documentId":"` + id + `","variables":{"id":"` + j.ID + `"}}}`)
		require.Equal(t, "next", s.receive().Type)
		s.send(`{"id":"2","type":"subscribe","payload":{"extensions":{"persistedQuery":{"sha256Hash":"` + hashOf(watchEvents) + `"}},"variables":{"id":"` + j.ID + `"}}}`)
		require.Equal(t, "next", s.receive().Type)
		a := b.raw(t, asAlice, `{"documentId":"`+id+`","variables":{"id":"`+j.ID+`"}}`)
		require.Equal(t, "NOT_ACCEPTABLE", a.code(), "it is known, and a subscription")
	}
}

func TestUnknownDocumentsAreNotFoundAndNotExecuted(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{false, true} {
		b := trusting(t, required)
		s := b.open(t, asAlice)
		a := b.raw(t, asAlice, `{"documentId":"other"}`)
		require.Equal(t, "PERSISTED_QUERY_NOT_FOUND", a.code())
		require.Equal(t, "PersistedQueryNotFound", a.Errors[0].Message, "Apollo's and urql's clients look for it")
		a = b.raw(t, asAlice, `{"documentId":"other"}`, "Accept", "application/graphql-response+json")
		require.Equal(t, http.StatusBadRequest, a.status)
		s.send(`{"id":"1","type":"subscribe","payload":{"documentId":"other"}}`)
		m := s.receive()
		require.Equal(t, "error", m.Type)
		require.Contains(t, string(m.Payload), `"PERSISTED_QUERY_NOT_FOUND"`)

		a = b.raw(t, asAlice, `{"query":"{ __typename }","documentId":"`+md5OfWho+`"}`)
		require.Equal(t, "DOCUMENT_MISMATCH", a.code())
		for _, body := range []string{
			`{"id":7}`, `{"documentId":"a","extensions":{"persistedQuery":{"sha256Hash":"b"}}}`, `{"documentId":1}`,
			`{"documentId":""}`, `{"extensions":{"persistedQuery":{}}}`, `{"extensions":{"persistedQuery":{"sha256Hash":7}}}`,
		} {
			a = b.raw(t, asAlice, body)
			require.Equal(t, http.StatusBadRequest, a.status, body)
			require.Equal(t, "BAD_REQUEST", a.code(), body)
		}
		require.Equal(t, "BAD_REQUEST", b.byURL(t, "documentId=a&documentId=b").code())
		require.Equal(t, "BAD_REQUEST", b.byURL(t, "").code())
	}
	b := setup(t) // without a manifest
	require.Equal(t, "PERSISTED_QUERY_NOT_FOUND", b.raw(t, asAlice, `{"documentId":"other"}`).code())
	a := b.raw(t, asAlice, `{"query":"`+who+`","extensions":{"persistedQuery":{"version":1,"sha256Hash":"other"}}}`)
	require.Equal(t, "alice", a.at(t, "viewer", "subject"), "a client that falls back to the text is served")
}

func TestOtherDocumentsAreRefusedOnEveryTransportWhereTrustIsRequired(t *testing.T) {
	t.Parallel()
	b := trusting(t, true)
	s := b.open(t, asAlice)
	for i, query := range []string{who + " ", createWith, `{ __typename }`, introspection, ``, `{`} {
		require.Equal(t, "DOCUMENT_NOT_TRUSTED", b.post(t, asAlice, query, "").code(), query)
		require.Equal(t, "DOCUMENT_NOT_TRUSTED", b.get(t, asAlice, query, "").code(), query)
		next, _ := b.stream(t, asAlice, query, "")
		require.Contains(t, next().data, `"DOCUMENT_NOT_TRUSTED"`)
		s.subscribe(string(rune('a'+i)), query, "")
		m := s.receive()
		require.Equal(t, "error", m.Type)
		require.Contains(t, string(m.Payload), `"DOCUMENT_NOT_TRUSTED"`)
	}
	a := b.raw(t, asAlice, `{"query":"{ __typename }","documentId":"other"}`)
	require.Equal(t, "DOCUMENT_NOT_TRUSTED", a.code(), "an id that is unknown makes a text no better")
	require.Zero(t, b.jobs.calls)

	b = trusting(t, false)
	require.Equal(t, "Query", b.post(t, asAlice, `{ __typename }`, "").at(t, "__typename"), "none is required")
}

func TestAManifestIsHeldAgainstTheSchemaAndTheLimits(t *testing.T) {
	t.Parallel()
	limits := operation.Limits{Depth: 4, Complexity: 100}
	ok := manifest(t, `query Page($n: Int!) { jobs(first: $n) { edges { node { id } } } }`)
	require.NoError(t, graph.CheckDocuments(t.Context(), graph.Options{Documents: ok, Limits: limits}), "a page may be small")
	for document, want := range map[string]string{
		`query A { nope }`: "nope",
		`query A {`:        "Expected Name",
		`query A { jobs(first: 99) { edges { node { id state } } } }`:                                "operation A: the complexity is",
		`query A { viewer { subject } } query B { jobs(first: 99) { edges { node { id state } } } }`: "operation B: the complexity is",
		`{ jobs { edges { node { attempts { id } } } } }`:                                            "more than 4 levels",
		`{ __schema { queryType { name } } }`:                                                        "does not tell its schema",
	} {
		err := graph.CheckDocuments(t.Context(), graph.Options{Documents: manifest(t, document), Limits: limits, NoIntrospection: true})
		require.ErrorContains(t, err, want, document)
		require.ErrorContains(t, err, "trusted document "+hashOf(document), "it names the document")
		require.NotContains(t, err.Error(), md5OfWho, "and no other")
	}
}
