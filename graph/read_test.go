package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/viewer"
)

func TestJobHasAllItsFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	first := b.Attempt(t, j.ID)
	b.Move(t, first.ID, attempt.StateFAILED, `{"code":"JAMMED","message":"jam"}`)
	second := b.Attempt(t, j.ID)
	sys := viewer.NewSystemContext(t.Context())
	require.NoError(t, b.Store.Client().Attempt.UpdateOneID(first.ID).SetInputTokens(3).SetCost("0.1").SetCurrency("USD").Exec(sys))
	require.NoError(t, b.Store.Client().Attempt.UpdateOneID(second.ID).SetInputTokens(4).SetOutputTokens(1).SetCost("0.2").SetCurrency("USD").Exec(sys))
	b.Move(t, second.ID, attempt.StateSUCCEEDED, "")
	b.Finish(t, j.ID, job.StateSUCCEEDED, second.ID)

	a := b.post(t, asAlice, `query($id: ID!) { job(id: $id) {
		id idempotencyKey task taskVersion input target fallbacks state version result owner keyExpiresAt
		completedBy { id number } usage { inputTokens outputTokens cost currency }
		attempts { id state error { code message retryable retryAfterMs } usage { inputTokens } job { id } }
		events { number type from to attempt { id } detail } tail: events(after: 3, first: 1) { number } } }`, `{"id":"`+j.ID+`"}`)
	require.Equal(t, "alice", a.at(t, "job", "owner"))
	require.Equal(t, second.ID, a.at(t, "job", "completedBy", "id"))
	require.Equal(t, []any{"demo/fax"}, a.at(t, "job", "fallbacks"))
	require.Equal(t, map[string]any{"ok": true}, a.at(t, "job", "result"))
	require.Equal(t, map[string]any{
		"inputTokens": json.Number("7"), "outputTokens": json.Number("1"), "cost": "0.3", "currency": "USD",
	}, a.at(t, "job", "usage"), "a sum by way of doubles would be 0.30000000000000004")
	require.Equal(t, "JAMMED", a.at(t, "job", "attempts", 0, "error", "code"))
	require.Nil(t, a.at(t, "job", "attempts", 1, "error"))
	require.Equal(t, j.ID, a.at(t, "job", "attempts", 1, "job", "id"))
	require.Len(t, a.at(t, "job", "events"), 6)
	require.Equal(t, first.ID, a.at(t, "job", "events", 1, "attempt", "id"))
	require.Equal(t, []any{map[string]any{"number": json.Number("4")}}, a.at(t, "job", "tail"))
}

func TestNodesAreFoundByTheirKind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	at := b.Attempt(t, j.ID)
	const missing = "job_01h455vb4pex5vsknk084sn02q"
	ids, err := json.Marshal([]string{j.ID, missing, at.ID, "nonsense", "usr_01h455vb4pex5vsknk084sn02q", j.ID})
	require.NoError(t, err)
	a := b.post(t, asAlice, `query($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Job { key: idempotencyKey owner } ... on Attempt { job { key: idempotencyKey } } } }`,
		`{"ids":`+string(ids)+`}`)
	require.Equal(t, "Job", a.at(t, "nodes", 0, "__typename"))
	require.Equal(t, "k", a.at(t, "nodes", 0, "key"))
	require.Nil(t, a.at(t, "nodes", 1))
	require.Equal(t, "Attempt", a.at(t, "nodes", 2, "__typename"))
	require.Equal(t, "k", a.at(t, "nodes", 2, "job", "key"))
	require.Nil(t, a.at(t, "nodes", 3))
	require.Nil(t, a.at(t, "nodes", 4))
	require.Equal(t, j.ID, a.at(t, "nodes", 5, "id"))
	for _, id := range []string{j.ID, at.ID} {
		require.Equal(t, id, b.post(t, asAlice, `{ node(id: "`+id+`") { id } }`, "").at(t, "node", "id"))
	}
	for _, id := range []string{missing, "", "job_", "\\u0000"} {
		require.Nil(t, b.post(t, asAlice, `{ node(id: "`+id+`") { id } job(id: "`+id+`") { id } }`, "").at(t, "node"), id)
	}
}

func TestJobByKeyIsTheViewersOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine, theirs := b.Job(t, alice, "k"), b.Job(t, viewer.Viewer{Issuer: "dev", Subject: "olga", Operator: true}, "k")
	const query = `{ jobByKey(idempotencyKey: "k") { id owner } }`
	require.Equal(t, mine.ID, b.post(t, asAlice, query, "").at(t, "jobByKey", "id"))
	require.Equal(t, theirs.ID, b.post(t, asOperator, query, "").at(t, "jobByKey", "id"))
	require.Nil(t, b.post(t, asMallory, query, "").at(t, "jobByKey"))
	require.Nil(t, b.post(t, asAlice, `{ jobByKey(idempotencyKey: "\u0000") { id } }`, "").at(t, "jobByKey"))
}

func TestConnectionsPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 60 {
		b.Job(t, alice, fmt.Sprint("k", i))
	}
	a := b.post(t, asAlice, `{ jobs { totalCount edges { node { id } } pageInfo { hasNextPage } } }`, "")
	require.Len(t, a.at(t, "jobs", "edges"), 50, "the default page")
	require.Equal(t, true, a.at(t, "jobs", "pageInfo", "hasNextPage"))

	seen := map[any]bool{}
	cursor := "null"
	for pages := 0; ; pages++ {
		require.Less(t, pages, 10)
		a := b.post(t, asAlice, `query($after: Cursor) { jobs(first: 25, after: $after, orderBy: {field: CREATED_AT, direction: DESC}) {
			edges { node { id } } pageInfo { hasNextPage endCursor } } }`, `{"after":`+cursor+`}`)
		for _, e := range a.at(t, "jobs", "edges").([]any) {
			id := e.(map[string]any)["node"].(map[string]any)["id"]
			require.False(t, seen[id], "no row comes twice")
			seen[id] = true
		}
		if more, ok := a.at(t, "jobs", "pageInfo", "hasNextPage").(bool); ok && !more {
			break
		}
		cursor = `"` + a.at(t, "jobs", "pageInfo", "endCursor").(string) + `"`
	}
	require.Len(t, seen, 60)

	for query, code := range map[string]string{
		`{ jobs(first: 201) { totalCount } }`:                        "PAGE_TOO_LARGE",
		`{ attempts(last: 201) { totalCount } }`:                     "PAGE_TOO_LARGE",
		`{ jobs(first: -1) { totalCount } }`:                         "BAD_USER_INPUT",
		`{ jobs(first: 1, last: 1) { totalCount } }`:                 "BAD_USER_INPUT",
		`{ jobs(after: "nonsense") { totalCount } }`:                 "BAD_USER_INPUT",
		`{ jobs(where: {and: [{}]}) { totalCount } }`:                "BAD_USER_INPUT",
		`{ jobs(where: {createdAtGT: "yesterday"}) { totalCount } }`: "BAD_USER_INPUT",
	} {
		require.Equal(t, code, b.post(t, asAlice, query, "").code(), query)
	}
}

func TestACursorIsOfItsOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 3 {
		b.Attempt(t, b.Job(t, alice, fmt.Sprint("k", i)).ID)
	}
	for list, orders := range map[string][]string{
		"jobs": {``, `orderBy: {field: CREATED_AT, direction: ASC}`, `orderBy: {field: CREATED_AT, direction: DESC}`,
			`orderBy: {field: UPDATED_AT, direction: ASC}`, `orderBy: {field: STATE, direction: ASC}`},
		"attempts": {``, `orderBy: {field: CREATED_AT, direction: ASC}`, `orderBy: {field: CREATED_AT, direction: DESC}`},
	} {
		for _, made := range orders {
			a := b.post(t, asAlice, `{ l: `+list+`(first: 1, `+made+`) { edges { cursor } pageInfo { endCursor } } }`, "")
			cursor, ok := a.at(t, "l", "edges", 0, "cursor").(string)
			require.True(t, ok)
			require.Equal(t, cursor, a.at(t, "l", "pageInfo", "endCursor"))
			for _, used := range orders {
				for _, place := range []string{`first: 5, after: "` + cursor + `"`, `last: 5, before: "` + cursor + `"`} {
					a := b.post(t, asAlice, `{ l: `+list+`(`+place+`, `+used+`) { edges { node { id } } } }`, "")
					if used != made {
						require.Equal(t, "BAD_USER_INPUT", a.code(), "%s made under %q, used under %q", list, made, used)
						continue
					}
					require.Empty(t, a.Errors, a.body)
				}
			}
		}
	}
}

func TestAnEmptyListMatchesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Attempt(t, j.ID)
	for where, n := range map[string]string{
		`{stateIn: []}`:                             "0",
		`{idIn: []}`:                                "0",
		`{createdAtIn: []}`:                         "0",
		`{state: QUEUED, taskIn: []}`:               "0",
		`{not: {stateIn: []}}`:                      "1",
		`{or: [{stateIn: []}]}`:                     "0",
		`{or: [{stateIn: []}, {task: "triage"}]}`:   "1",
		`{and: [{task: "triage"}, {stateIn: []}]}`:  "0",
		`{hasAttemptsWith: [{targetIn: []}]}`:       "0",
		`{stateNotIn: []}`:                          "1",
		`{and: [{stateNotIn: []}]}`:                 "1",
		`{not: {stateNotIn: []}}`:                   "0",
		`{or: []}`:                                  "0",
		`{task: "triage", or: []}`:                  "0",
		`{not: {or: []}}`:                           "1",
		`{and: []}`:                                 "1",
		`{not: {and: []}}`:                          "0",
		`{or: null, and: null}`:                     "1",
		`{hasAttemptsWith: []}`:                     "1",
		`{not: {hasAttemptsWith: []}}`:              "0",
		`{hasAttempts: true, hasAttemptsWith: []}`:  "1",
		`{hasAttempts: false, hasAttemptsWith: []}`: "0",
		`{task: "triage", stateNotIn: []}`:          "1",
		`{task: "triage", stateIn: null}`:           "1",
		`{stateIn: [QUEUED]}`:                       "1",
	} {
		a := b.post(t, asAlice, `{ jobs(where: `+where+`) { totalCount } }`, "")
		require.Empty(t, a.Errors, "%s: %s", where, a.body)
		require.Equal(t, json.Number(n), a.at(t, "jobs", "totalCount"), where)
	}
	a := b.post(t, asAlice, `query($w: AttemptWhereInput) { attempts(where: $w) { totalCount } }`, `{"w":{"hasJobWith":[{"stateIn":[]}]}}`)
	require.Equal(t, json.Number("0"), a.at(t, "attempts", "totalCount"))
}

func TestFalseOfANilFilterIsItsOpposite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Attempt(t, j.ID)
	failed := b.Attempt(t, b.Job(t, alice, "l").ID)
	sys := viewer.NewSystemContext(t.Context())
	require.NoError(t, b.Store.Client().Attempt.UpdateOneID(failed.ID).SetErrorCode("NO").SetErrorMessage("no").SetErrorRetryable(false).Exec(sys))
	for where, want := range map[string]string{
		`{errorCodeIsNil: true}`:                                                        "1",
		`{errorCodeIsNil: false}`:                                                       "1",
		`{errorCodeNotNil: false, errorCode: "NO"}`:                                     "0",
		`{errorCodeIsNil: false, errorCode: "NO"}`:                                      "1",
		`{errorCodeIsNil: false, errorCodeNotNil: false}`:                               "0",
		`{errorCodeIsNil: false, errorCodeNotNil: true}`:                                "1",
		`{errorCodeIsNil: null}`:                                                        "2",
		`{not: {errorCodeIsNil: false}}`:                                                "1",
		`{or: [{errorCodeIsNil: false}]}`:                                               "1",
		`{or: {errorCodeIsNil: false}}`:                                                 "1",
		`{or: [{errorCodeIsNil: true}, {errorCodeIsNil: false}]}`:                       "2",
		`{hasJobWith: [{hasAttemptsWith: [{errorCodeIsNil: false, errorCode: "NO"}]}]}`: "1",
		`{finishedAtNotNil: false}`:                                                     "2",
		`{finishedAtIsNil: false}`:                                                      "0",
	} {
		a := b.post(t, asAlice, `{ attempts(where: `+where+`) { totalCount } }`, "")
		require.Empty(t, a.Errors, "%s: %s", where, a.body)
		require.Equal(t, json.Number(want), a.at(t, "attempts", "totalCount"), where)
	}
	for query, variables := range map[string]string{
		`query($w: AttemptWhereInput) { l: attempts(where: $w) { totalCount } }`:                                      `{"w":{"or":{"errorCodeIsNil":false}}}`,
		`query($w: [AttemptWhereInput!]) { l: attempts(where: {or: $w}) { totalCount } }`:                             `{"w":{"errorCodeIsNil":false}}`,
		`query($f: Boolean) { l: attempts(where: {errorCodeIsNil: $f}) { totalCount } }`:                              `{"f":false}`,
		`query($w: AttemptWhereInput = {errorCodeNotNil: false}) { l: attempts(where: $w) { totalCount } }`:           ``,
		`query($f: Boolean) { ...F } fragment F on Query { l: attempts(where: {errorCodeIsNil: $f}) { totalCount } }`: `{"f":false}`,
	} {
		a := b.post(t, asAlice, query, variables)
		require.Empty(t, a.Errors, "%s: %s", query, a.body)
		require.Equal(t, json.Number("1"), a.at(t, "l", "totalCount"), query)
	}
}

func TestACursorIsOfItsList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Attempt(t, b.Job(t, alice, "k").ID)
	lists := []string{`jobs(%s)`, `attempts(%s)`,
		`jobs(%s orderBy: {field: CREATED_AT, direction: DESC})`, `attempts(%s orderBy: {field: CREATED_AT, direction: DESC})`}
	for _, made := range lists {
		cursor, ok := b.post(t, asAlice, `{ l: `+fmt.Sprintf(made, "first: 1")+` { edges { cursor } } }`, "").at(t, "l", "edges", 0, "cursor").(string)
		require.True(t, ok)
		for _, used := range lists {
			a := b.post(t, asAlice, `{ l: `+fmt.Sprintf(used, `after: "`+cursor+`"`)+` { totalCount edges { cursor } } }`, "")
			if made == used {
				require.Empty(t, a.Errors, a.body)
				continue
			}
			require.Equal(t, "BAD_USER_INPUT", a.code(), "made by %s, used by %s", made, used)
			require.Contains(t, a.body, "not one of this list")
		}
	}
	for _, cursor := range []string{"nonsense", "", "!", "z9", "gqFp", "wQ", strings.Repeat("A", 500)} {
		a := b.post(t, asAlice, `query($c: Cursor) { jobs(after: $c) { totalCount } }`, `{"c":"`+cursor+`"}`)
		require.Equal(t, "BAD_USER_INPUT", a.code(), cursor)
		for _, word := range []string{"msgpack", "EOF", "decod", "base64"} {
			require.NotContains(t, a.body, word, cursor)
		}
	}
}

func TestConnectionsFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	unknown := b.Attempt(t, j.ID)
	b.Move(t, unknown.ID, attempt.StateUNKNOWN, `{"code":"ACK_TIMEOUT","message":"silence"}`)
	b.Attempt(t, j.ID)
	a := b.post(t, asAlice, `{ attempts(where: {state: UNKNOWN, hasJobWith: [{idempotencyKey: "k"}]}) { totalCount edges { node { id error { code } job { usage { cost } } } } } }`, "")
	require.Len(t, a.at(t, "attempts", "edges"), 1)
	require.Equal(t, unknown.ID, a.at(t, "attempts", "edges", 0, "node", "id"))
	require.Equal(t, "ACK_TIMEOUT", a.at(t, "attempts", "edges", 0, "node", "error", "code"))
}

// The generated eager loading looks for fields by their alias, and keeps one query for each edge.
func TestAliasesChangeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 3 {
		j := b.Job(t, alice, fmt.Sprint("k", i))
		for range 2 {
			a := b.Attempt(t, j.ID)
			b.Move(t, a.ID, attempt.StateSUCCEEDED, "")
			if i == 0 {
				b.Finish(t, j.ID, job.StateSUCCEEDED, a.ID)
				break
			}
		}
	}
	a := b.post(t, asAlice, `{ j: jobs(first: 1) { n: totalCount e: edges { x: node { i: id } y: node { s: state ...F } } e2: edges { cursor } p: pageInfo { h: hasNextPage } } }
		fragment F on Job { a: completedBy { number } b: completedBy { state job { task } j2: job { target } } all: attempts { state } }`, "")
	require.Equal(t, json.Number("3"), a.at(t, "j", "n"))
	require.Equal(t, true, a.at(t, "j", "p", "h"))
	require.NotEmpty(t, a.at(t, "j", "e", 0, "x", "i"))
	require.Equal(t, "SUCCEEDED", a.at(t, "j", "e", 0, "y", "s"))
	require.Equal(t, json.Number("1"), a.at(t, "j", "e", 0, "y", "a", "number"))
	require.Equal(t, "SUCCEEDED", a.at(t, "j", "e", 0, "y", "b", "state"))
	require.Equal(t, "triage", a.at(t, "j", "e", 0, "y", "b", "job", "task"))
	require.Equal(t, "demo/laser", a.at(t, "j", "e", 0, "y", "b", "j2", "target"))
	require.Equal(t, "SUCCEEDED", a.at(t, "j", "e", 0, "y", "all", 0, "state"))
	require.NotEmpty(t, a.at(t, "j", "e2", 0, "cursor"))
}

func TestTasksAndTargets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.post(t, asAlice, `{ tasks { name version inputSchema outputSchema target fallbacks }
		targets { id contract { state } } for: targets(task: "triage") { id provider model available contract { task state reasons checkedAt expiresAt } } }`, "")
	require.Equal(t, map[string]any{"type": "object"}, a.at(t, "tasks", 0, "inputSchema"))
	require.Equal(t, true, a.at(t, "tasks", 0, "outputSchema"))
	require.Nil(t, a.at(t, "targets", 0, "contract"))
	require.Equal(t, "MISSING", a.at(t, "for", 0, "contract", "state"))
	require.Len(t, a.at(t, "for", 0, "contract", "reasons"), 1)
	require.Equal(t, "BAD_USER_INPUT", b.post(t, asAlice, `{ targets(task: "nope") { id } }`, "").code())
}

func TestAPageTakesAFixedNumberOfStatements(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		`{ jobs { edges { node { id owner usage { cost } completedBy { id } attempts { state error { code } job { id owner usage { cost } } } } } } }`,
		`{ attempts { edges { node { job { owner usage { cost } attempts { id } } } } } }`,
	} {
		counts := map[int]int{}
		for _, n := range []int{2, 20} {
			b := setup(t)
			for i := range n {
				j := b.Job(t, viewer.Viewer{Issuer: "dev", Subject: fmt.Sprint("u", i)}, "k")
				b.Attempt(t, j.ID)
			}
			before := b.statements.Load()
			require.Empty(t, b.post(t, asOperator, query, "").Errors)
			counts[n] = int(b.statements.Load() - before)
		}
		require.Equal(t, counts[2], counts[20], "a statement for each row of %s", query)
	}
}

// A mutation answers with the row as the change left it. A winner that comes while the answer is made is not in that row,
// and must not stand beside a state and a result that know nothing of it.
func TestCompletedByIsOfTheSameMomentAsItsRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.Job(t, alice, "k")
	a := b.Attempt(t, row.ID)
	b.Move(t, a.ID, attempt.StateSUCCEEDED, "")
	b.Finish(t, row.ID, job.StateSUCCEEDED, a.ID)
	b.jobs.done = jobs.AttemptAndJob{Attempt: a, Job: row}

	const start = `mutation($id: ID!) { startAttempt(input: {jobId: $id}) { ... on StartAttemptSuccess { job { state result completedBy { id } } } } }`
	r := b.post(t, asAlice, start, `{"id":"`+row.ID+`"}`)
	require.Equal(t, map[string]any{"state": "QUEUED", "result": nil, "completedBy": nil}, r.at(t, "startAttempt", "job"))
	r = b.post(t, asAlice, `query($id: ID!) { job(id: $id) { state completedBy { id } } }`, `{"id":"`+row.ID+`"}`)
	require.Equal(t, map[string]any{"state": "SUCCEEDED", "completedBy": map[string]any{"id": a.ID}}, r.at(t, "job"))
}
