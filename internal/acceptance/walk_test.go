package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/providertest"
)

const (
	wholeSchema = `{__schema{queryType{name} mutationType{name} subscriptionType{name}
		types{kind name fields{name args{name type{...T}} type{...T}} inputFields{name type{...T}} possibleTypes{name}}}}
		fragment T on __Type{kind name ofType{kind name ofType{kind name ofType{kind name}}}}`
	kindList, kindNonNull, kindInput = "LIST", "NON_NULL", "INPUT_OBJECT"
)

type typeRef struct {
	Kind   string
	Name   string
	OfType *typeRef
}

// named is the type inside of lists and non-nulls.
func (r typeRef) named() typeRef {
	for r.OfType != nil {
		r = *r.OfType
	}
	return r
}

type argument struct {
	Name string
	Type typeRef
}

type fieldDefinition struct {
	Name string
	Args []argument
	Type typeRef
}

type typeDefinition struct {
	Kind, Name    string
	Fields        []fieldDefinition
	InputFields   []argument
	PossibleTypes []struct{ Name string }
}

type schema struct {
	QueryType, MutationType, SubscriptionType struct{ Name string }
	Types                                     []typeDefinition
}

func (s schema) find(name string) typeDefinition {
	i := slices.IndexFunc(s.Types, func(t typeDefinition) bool { return t.Name == name })
	return s.Types[i]
}

// leaf is one argument, or one value in one, by which something can be named.
type leaf struct {
	path []argument // from the field's argument to the value
}

func (l leaf) last() argument { return l.path[len(l.path)-1] }

// looksLikeID are texts that may name something although their type is not ID.
var looksLikeID = regexp.MustCompile(`(?i)(id|ids|key|owner|subject|issuer|token|hash)$`)

// predicate is what ent puts after a field's name in a filter.
var predicate = regexp.MustCompile(`(NEQ|NotIn|In|GTE|GT|LTE|LT|ContainsFold|Contains|HasPrefix|HasSuffix|EqualFold|IsNil|NotNil)$`)

func (l leaf) base() string { return predicate.ReplaceAllString(l.last().Name, "") }

func (l leaf) names() bool {
	switch l.last().Type.named().Name {
	case "ID", "Cursor":
		return true
	case "String":
		return looksLikeID.MatchString(l.base())
	}
	return false
}

// leaves are all values of an argument, filters in filters to the depth of two.
func (s schema) leaves(a argument, path []argument, nested int) (all []leaf) {
	path = append(slices.Clone(path), a)
	if t := a.Type.named(); t.Kind == kindInput {
		for _, f := range s.find(t.Name).InputFields {
			deeper := nested
			if strings.HasSuffix(f.Type.named().Name, "WhereInput") {
				if deeper++; deeper > 2 {
					continue
				}
			}
			all = append(all, s.leaves(f, path, deeper)...)
		}
		return all
	}
	return []leaf{{path}}
}

// value builds what is given for the argument: the leaf's value, and what else is required around it.
func (s schema) value(t *testing.T, path []argument, v any, fill func(argument) any) any {
	t.Helper()
	a := path[0]
	if len(path) > 1 {
		object := variables{}
		for _, f := range s.find(a.Type.named().Name).InputFields {
			switch {
			case f.Name == path[1].Name:
				object[f.Name] = s.value(t, path[1:], v, fill)
			case f.Type.Kind == kindNonNull || fill(f) != nil:
				object[f.Name] = fill(f)
			}
		}
		v = object
	}
	ref := a.Type
	if ref.Kind == kindNonNull {
		ref = *ref.OfType
	}
	if ref.Kind == kindList {
		return []any{v}
	}
	return v
}

func (r typeRef) String() string {
	switch r.Kind {
	case kindNonNull:
		return r.OfType.String() + "!"
	case kindList:
		return "[" + r.OfType.String() + "]"
	}
	return r.Name
}

// selection asks for everything that a type has, to a depth.
func (s schema) selection(ref typeRef, depth int) string {
	t := s.find(ref.named().Name)
	if len(t.Fields) == 0 && len(t.PossibleTypes) == 0 {
		return ""
	}
	out := []string{"__typename"}
	for _, p := range t.PossibleTypes {
		out = append(out, "... on "+p.Name+s.selection(typeRef{Name: p.Name}, depth))
	}
	for _, f := range t.Fields {
		if len(t.PossibleTypes) > 0 || slices.ContainsFunc(f.Args, func(a argument) bool { return a.Type.Kind == kindNonNull }) {
			continue
		}
		inner := s.find(f.Type.named().Name)
		if depth == 0 && len(inner.Fields)+len(inner.PossibleTypes) > 0 {
			continue
		}
		name := f.Name
		if name == "state" { // of jobs and of attempts they are of different types
			name = t.Name + "State: state"
		}
		out = append(out, name+s.selection(f.Type, depth-1))
	}
	return "{" + strings.Join(out, " ") + "}"
}

// What alice owns cannot be named by bob, through any argument of any field that the server says it has. The owner asks
// the same, so that an answer without anything proves something. A new argument that may name something fails the test
// until it is known here.
func TestWalkOfTheSchemaWithAStrangersIDs(t *testing.T) {
	t.Parallel()
	database := sqlite(t)
	g, f := newGateway(t, settings{database: database, more: "limits: {complexity: 1000000, aliases: 1000}\n"})
	f.OnModel("primary", acknowledged(nil, ""))
	f.Enqueue(providertest.Says(`{"text": "canary-of-the-result"}`, "stop"))
	alice, bob := g.client, g.as("bob")
	done := alice.becomes(t, alice.create(t, variables{"idempotencyKey": "canary-key-one", "task": "echo", "input": variables{"text": "canary-of-the-input"}}).ID, "SUCCEEDED")
	running := alice.create(t, variables{"idempotencyKey": "canary-key-two", "task": "echo", "input": variables{"text": "canary-of-the-input"}})
	at := alice.attemptBecomes(t, running.ID, 1, "RUNNING")

	s := field[schema](t, bob, "__schema", wholeSchema, nil)
	cursor := func(c *client, connection string) string {
		page := field[struct{ Edges []struct{ Cursor string } }](t, c, connection, `{`+connection+`(first: 1){edges{cursor}}}`, nil)
		require.Len(t, page.Edges, 1)
		return page.Edges[0].Cursor
	}
	jobs, attempts := []any{done.ID, running.ID}, []any{done.last().ID, at.ID}
	// known are alice's values for each name of an argument, by the field or type that it is of.
	known := map[string][]any{
		"node.id": append(slices.Clone(jobs), attempts...), "nodes.ids": append(slices.Clone(jobs), attempts...), "job.id": jobs,
		"jobByKey.idempotencyKey": {"canary-key-one"},
		"jobs.after":              {cursor(alice, "jobs")}, "jobs.before": {cursor(alice, "jobs")},
		"attempts.after": {cursor(alice, "attempts")}, "attempts.before": {cursor(alice, "attempts")},
		"JobWhereInput.id": jobs, "JobWhereInput.idempotencyKey": {"canary-key-one", "canary-key-two"},
		"AttemptWhereInput.id": attempts, "AttemptWhereInput.providerRequestID": {done.last().ProviderRequestID},
		"attemptUpdated.jobId": jobs, "jobEvents.jobId": jobs,
		"CreateJobInput.idempotencyKey": {"canary-key-one"},
		"StartAttemptInput.jobId":       jobs, "CancelJobInput.jobId": jobs,
		"CancelAttemptInput.attemptId": attempts, "ResolveAttemptInput.attemptId": attempts,
	}
	required := map[string]any{"task": "echo", "input": variables{"text": "bob's"}, "outcome": "FAILED", "note": "bob's"}
	fill := func(a argument) any { return required[a.Name] }
	secrets := []string{
		done.ID, running.ID, done.last().ID, at.ID, "canary-key-one", "canary-key-two", "alice", "canary-of",
	}
	untouched := func() string {
		db, _ := open(t, database)
		var all []string
		for _, text := range []string{
			"SELECT * FROM jobs WHERE owner_id IN (SELECT id FROM owners WHERE subject = 'alice') ORDER BY id",
			"SELECT id, job_id, state, number FROM attempts WHERE job_id IN (SELECT id FROM jobs WHERE owner_id IN (SELECT id FROM owners WHERE subject = 'alice')) ORDER BY id",
			"SELECT * FROM job_events WHERE job_id IN (SELECT id FROM jobs WHERE owner_id IN (SELECT id FROM owners WHERE subject = 'alice')) ORDER BY job_id, number",
			"SELECT * FROM api_keys",
		} {
			all = append(all, fmt.Sprint(query(t, db, text)))
		}
		return strings.Join(all, "\n")
	}
	before := untouched()

	asked, found := 0, map[string]bool{}
	walk := func(operation string, root typeDefinition, depth int, f fieldDefinition, ls []leaf) {
		for _, l := range ls {
			of := f.Name
			if len(l.path) > 1 {
				of = l.path[len(l.path)-2].Type.named().Name
			}
			name := of + "." + l.base()
			values, ok := known[name]
			require.True(t, ok, "%s.%s: say what %s names", root.Name, f.Name, name)
			for _, v := range values {
				a := l.path[0]
				vars := variables{"v": s.value(t, l.path, v, fill)}
				within := depth
				if strings.HasSuffix(of, "WhereInput") && l.last().Name != l.base() {
					within = 1 // what a filter lets through is the same whatever is asked of it
				}
				text := operation + "($v: " + a.Type.String() + "){" + f.Name + "(" + a.Name + ": $v)" + s.selection(f.Type, within) + "}"
				var answer string
				if operation == "subscription" {
					m := bob.overSSE(t, text, vars).next(t)
					answer = m.text + fmt.Sprint(m.response)
					require.Equal(t, []string{"NOT_FOUND"}, m.codes(), text)
				} else {
					res := bob.post(t, text, vars)
					require.Equal(t, http.StatusOK, res.status, "%s\n%s", text, res.text)
					require.Subset(t, []string{"NOT_FOUND", "FORBIDDEN"}, res.codes(), "%s %v: %s", text, vars, res.text)
					answer = res.text
				}
				for _, secret := range secrets {
					if name == "CreateJobInput.idempotencyKey" && secret == v {
						continue // it is the key of bob's own job now
					}
					require.NotContains(t, answer, secret, "%s %v", text, vars)
				}
				asked++
				if operation == "query" && !found[name] {
					own := alice.post(t, text, vars).text
					found[name] = slices.ContainsFunc(secrets[:4], func(id string) bool { return strings.Contains(own, id) })
				}
			}
		}
	}
	for _, operation := range []string{"query", "subscription", "mutation"} { // the last one gives bob a job of his own
		root := map[string]typeDefinition{
			"query": s.find(s.QueryType.Name), "mutation": s.find(s.MutationType.Name), "subscription": s.find(s.SubscriptionType.Name),
		}[operation]
		for _, f := range root.Fields {
			var ls []leaf
			for _, a := range f.Args {
				for _, l := range s.leaves(a, nil, 0) {
					if l.names() {
						ls = append(ls, l)
					}
				}
			}
			walk(operation, root, 2, f, ls)
		}
	}
	// Fields below the roots take no ids.
	for _, typ := range s.Types {
		if strings.HasPrefix(typ.Name, "__") || slices.Contains([]string{s.QueryType.Name, s.MutationType.Name, s.SubscriptionType.Name}, typ.Name) {
			continue
		}
		for _, f := range typ.Fields {
			for _, a := range f.Args {
				for _, l := range s.leaves(a, nil, 0) {
					require.False(t, l.names(), "%s.%s takes %s: walk it", typ.Name, f.Name, l.last().Name)
				}
			}
		}
		require.NotRegexp(t, `(?i)api_?key`, typ.Name, "API keys have no place in GraphQL")
	}
	require.Equal(t, before, untouched())
	require.Greater(t, asked, 100)
	for name := range known {
		if of, _, _ := strings.Cut(name, "."); strings.HasSuffix(of, "WhereInput") || slices.Contains([]string{"node", "nodes", "job", "jobByKey"}, of) {
			require.True(t, found[name], "the owner finds nothing by %s, so nothing is proved", name)
		}
	}
	// Everything without any id, too.
	for _, f := range s.find(s.QueryType.Name).Fields {
		if slices.ContainsFunc(f.Args, func(a argument) bool { return a.Type.Kind == kindNonNull }) {
			continue
		}
		answer := bob.post(t, "{"+f.Name+s.selection(f.Type, 2)+"}", nil).text
		require.True(t, json.Valid([]byte(answer)))
		for _, id := range secrets[:4] {
			require.NotContains(t, answer, id, f.Name)
		}
		require.NotContains(t, answer, "canary-of", f.Name)
	}
}
