package acceptance

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/providertest"
)

const targetsQuery = `query($task: String){targets(task: $task){id contract{state reasons}}}`

// contract is the status of the target for echo.
func (c *client) contract(t *testing.T, target string) (state string, reasons []string) {
	t.Helper()
	type status struct {
		ID       string
		Contract struct {
			State   string
			Reasons []string
		}
	}
	for _, s := range field[[]status](t, c, "targets", targetsQuery, variables{"task": "echo"}) {
		if s.ID == target {
			return s.Contract.State, s.Contract.Reasons
		}
	}
	t.Fatalf("no target %s", target)
	return "", nil
}

func TestFallbackNeedsAFreshProof(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			s := settings{database: database, tasks: writeTasks(t)}
			g, f := newGateway(t, s)
			s.url = f.url
			f.OnModel("primary", providertest.Error(http.StatusBadRequest, "no_paper"))
			fails := func(t *testing.T, key string, g *gateway) job {
				t.Helper()
				j := g.create(t, intent(key))
				j = g.becomes(t, j.ID, "FAILED")
				require.Len(t, j.Attempts, 1)
				var skipped []event
				for _, e := range rest[event](t, g.overWebSocket(t, eventsStream, variables{"id": j.ID}), "jobEvents") {
					if e.Type == typeSkipped {
						skipped = append(skipped, e)
					}
				}
				require.Len(t, skipped, 1)
				require.Equal(t, second, skipped[0].Detail.Target)
				_, reasons := g.contract(t, second)
				require.NotEmpty(t, reasons)
				require.Equal(t, ageless(reasons), ageless(skipped[0].Detail.Reasons))
				for _, target := range []string{second, third, "no/such"} {
					o := g.start(t, j.ID, target)
					require.Equal(t, typeNotAllowed, o.Typename)
					require.Equal(t, "FALLBACK_NOT_ALLOWED", o.Code)
					require.Equal(t, target, o.Target)
					require.NotEmpty(t, o.Reasons)
				}
				require.Equal(t, "FAILED", g.job(t, j.ID).State)
				return j
			}

			t.Run("NeverProved", func(t *testing.T) {
				state, _ := g.contract(t, second)
				require.Equal(t, "MISSING", state)
				j := fails(t, "missing", g)
				// Its own target needs no proof.
				require.Equal(t, typeStarted, g.start(t, j.ID, primary).Typename)
				g.becomes(t, j.ID, "FAILED")
			})
			t.Run("Proved", func(t *testing.T) {
				prove(t, g.config, "echo", second)
				state, _ := g.contract(t, second)
				require.Equal(t, "PASSED", state)
				j := g.create(t, intent("proved"))
				require.Equal(t, second, g.becomes(t, j.ID, "SUCCEEDED").last().Target)
			})
			t.Run("ProviderConfiguredOtherwise", func(t *testing.T) {
				g.stop() // it would go on where the proof is good
				other := s
				other.ack = 90 * time.Second
				changed := other.start(t)
				state, _ := changed.contract(t, second)
				require.Equal(t, "STALE", state)
				fails(t, "provider", changed)
				changed.stop()
			})
			t.Run("TaskChanged", func(t *testing.T) {
				other := s
				other.tasks = writeTasks(t)
				require.NoError(t, os.WriteFile(filepath.Join(other.tasks, "echo", "prompt.tmpl"), []byte("Echo {{json .Input}}\n"), 0o600))
				writeGoldens(t, other.tasks)
				changed := other.start(t)
				state, _ := changed.contract(t, second)
				require.Equal(t, "STALE", state)
				fails(t, "task", changed)
				prove(t, changed.config, "echo", second)
				j := changed.create(t, intent("proved again"))
				require.Equal(t, second, changed.becomes(t, j.ID, "SUCCEEDED").last().Target)
				changed.stop()
			})
			t.Run("ProofFailed", func(t *testing.T) {
				g := s.start(t)
				state, _ := g.contract(t, second)
				require.Equal(t, "PASSED", state, "as it was before")
				f.OnModel("second", providertest.Says(`{"text": "hello", "undeclared": 1}`, "stop"))
				require.NotZero(t, contractsRun(t, g.config, "echo", second))
				state, _ = g.contract(t, second)
				require.Equal(t, "FAILED", state)
				fails(t, "failed", g)
			})
		})
	}
}

// The process that starts the fallback and the one that sends it are configured differently: the sender has the last word.
func TestSenderAsksTheGateAgain(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			folder := writeTasks(t)
			starter, busy := newGateway(t, settings{database: database, places: 1, tasks: folder})
			busy.OnModel("primary", acknowledged(nil, ""))
			held := starter.create(t, intent("held"))
			starter.attemptBecomes(t, held.ID, 1, "RUNNING") // its only worker has something to do
			prove(t, starter.config, "echo", second)

			_, f := newGateway(t, settings{database: database, places: 1, tasks: folder})
			f.OnModel("primary", providertest.Error(http.StatusBadRequest, "no_paper"))
			j := starter.create(t, variables{"idempotencyKey": "k", "task": "echo", "input": variables{"text": "hello"}, "fallbacks": []string{}})
			starter.becomes(t, j.ID, "FAILED")
			started := starter.start(t, j.ID, second)
			require.Equal(t, typeStarted, started.Typename, "%+v", started)
			refused := starter.attemptBecomes(t, j.ID, 2, "FAILED")
			require.Equal(t, "CONTRACT_NOT_PASSED", refused.code())
			require.Nil(t, refused.SentAt)
			require.Equal(t, "FAILED", starter.job(t, j.ID).State)
			require.Len(t, f.sent(), 1, "it was not sent")
			require.Len(t, busy.sent(), 1)
		})
	}
}

var age = regexp.MustCompile(` (\d+ [a-z]+|a moment) ago`)

// ageless leaves out how old a result was when somebody asked.
func ageless(reasons []string) []string {
	out := slices.Clone(reasons)
	for i, r := range out {
		out[i] = age.ReplaceAllString(r, " ago")
	}
	return out
}
