package campaign

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// The targets. mortal is a provider whose executions have a documented end, after which an attempt is presumed dead.
const (
	primary  = "fake/primary"
	second   = "fake/second"
	third    = "fake/third"
	unproved = "fake/unproved" // breaks its contract, and would answer jobs well
	mortal   = "mortal/one"
)

var allTargets = []string{primary, second, third, unproved, mortal}

// The tasks.
const (
	echo   = "echo"   // may race
	strict = "strict" // may not
)

var owners = []string{"alice", "bob", "carol"}

const (
	operator = "root"
	stranger = "mallory" // owns nothing and knows every id
)

// plan is all that is random about a run and decided beforehand.
type plan struct {
	seed    uint64
	intents int
	faults  []fault
}

// rng is the source of one thing's chance: the same seed and name give the same chance, whatever else happens.
func (p plan) rng(name string, n ...int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, name, n)
	return rand.New(rand.NewPCG(p.seed, h.Sum64()))
}

// intent is what one user wants, and how the user goes about it.
type intent struct {
	number    int
	owner     string
	key       string
	task      string
	input     json.RawMessage
	target    string   // empty: left out
	fallbacks []string // nil: left out
	hedge     int      // ms; 0: left out
	clicks    int      // createJob calls at once
	twin      json.RawMessage
	watched   bool
	probed    bool // by the stranger
	actions   int  // what the user does at most before giving up
}

// text is the input's, from which the provider knows the intent.
func text(number int) string { return fmt.Sprintf("intent %d", number) }

func (p plan) intent(number int) intent {
	r := p.rng("intent", number)
	in := intent{
		number: number, owner: pick(r, owners...), key: fmt.Sprintf("click-%d-%d", p.seed, number),
		task: echo, input: object(text(number)), clicks: 1, actions: 1 + r.IntN(8),
		watched: chance(r, 0.1), probed: chance(r, 0.1),
	}
	if chance(r, 0.4) {
		in.task = strict
	}
	if chance(r, 0.3) {
		in.target = pick(r, second, third, mortal)
	}
	switch x := r.Float64(); {
	case x < 0.1:
		in.fallbacks = []string{}
	case x < 0.3:
		in.fallbacks = []string{unproved, second}
	case x < 0.4:
		in.fallbacks = []string{mortal, unproved}
	}
	if chance(r, 0.3) {
		in.hedge = 50 + r.IntN(200)
	}
	if chance(r, 0.5) {
		in.clicks = 2 + r.IntN(4)
	}
	if chance(r, 0.15) {
		in.twin = object(text(number) + " and more")
	}
	return in
}

func object(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err) // strings always marshal
	}
	return raw
}

// fault is one thing that goes wrong once so many intents are done.
type fault struct {
	after int // intents
	kind  string
	which int // process or provider, modulo their number
	lasts time.Duration
}

func (f fault) String() string {
	return fmt.Sprintf("%s of %d for %s after %d", f.kind, f.which, f.lasts, f.after)
}

// newPlan spreads faults of the given kinds over the run, of which a long one has as many as fit into some minutes. Each
// kind comes before any comes again.
func newPlan(seed uint64, intents int, kinds []string) plan {
	p := plan{seed: seed, intents: intents}
	const often, most = 24, 120
	every := max(often, intents/most)
	r := p.rng("faults")
	var bag []string
	for at := every; at < intents; at += every {
		if len(bag) == 0 {
			bag = slices.Clone(kinds)
			r.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
		}
		p.faults = append(p.faults, fault{after: at, kind: bag[0], which: r.IntN(6), lasts: time.Duration(100+r.IntN(900)) * time.Millisecond})
		bag = bag[1:]
	}
	return p
}

func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
