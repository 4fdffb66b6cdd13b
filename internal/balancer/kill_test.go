package balancer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

const invalidInput = "InvalidInput"

// Two replicas on one PostgreSQL behind each program; the steps come one after the other, each with a fresh balancer, which
// holds nothing against a replica that was killed before.
func TestReplicasBehindABalancer(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := databases.DSN(t)
			replicas := startReplicas(t, database)
			listensPastAPooler(t, database)
			for _, step := range []struct {
				name string
				run  func(*testing.T, *running, []*replica)
			}{
				{"KeyChoosesTheReplicaAndArrivesThere", keyChooses},
				{"RequestsUpToTheLimitPassAndSayWhereTheyComeFrom", bodiesPass},
				{"AnswerLostWithItsReplicaComesFromTheOther", lostAfterCommit},
				{"LargeInputIsSentAgainWhenItsReplicaDies", largeInput},
				{"SilentReplicaIsGivenUpAndMayComeToItsSenses", silence},
				{"MutationWithoutKeyIsNotSentAgain", withoutKey},
				{"SubscribersMoveToTheOtherReplica", subscribersMove},
				{"DrainingReplicaGetsNothingNew", drains},
			} {
				if !t.Run(step.name, func(t *testing.T) {
					ensure(t, replicas)
					step.run(t, k.start(t, replicas), replicas)
				}) {
					return // the next one would only say that replicas are not as it expects
				}
			}
		})
	}
}

// route tells which replica a key leads to, by a query, which does not use it up.
func route(t *testing.T, b *running, replicas []*replica, key string) (chosen, other *replica) {
	t.Helper()
	before := replicas[0].count()
	b.post(t, key, viewerDocument, nil)
	if replicas[0].count() > before {
		return replicas[0], replicas[1]
	}
	return replicas[1], replicas[0]
}

func keyChooses(t *testing.T, b *running, replicas []*replica) {
	const many = 64
	seen := map[string]bool{}
	for i := 0; len(seen) < 2; i++ {
		require.Less(t, i, many, "all keys lead to one replica")
		key := fmt.Sprint("intent ", i)
		chosen, _ := route(t, b, replicas, key)
		seen[chosen.name] = true
		for _, replayed := range []bool{false, true} {
			before := chosen.count()
			created := b.post(t, key, createDocument, intent("", nil)).Data.CreateJob
			require.Equal(t, key, created.Job.IdempotencyKey)
			require.Equal(t, replayed, created.Replayed)
			require.Equal(t, before+1, chosen.count(), "the same replica")
			require.Equal(t, key, chosen.last(t).Header.Get("Idempotency-Key"))
		}
	}
	require.Equal(t, invalidInput, b.post(t, "one", createDocument, intent("another", nil)).Data.CreateJob.Typename)

	clear(seen)
	for i := 0; len(seen) < 2; i++ {
		require.Less(t, i, many, "without a key all goes to one replica")
		chosen, _ := route(t, b, replicas, "")
		seen[chosen.name] = true
	}
}

func bodiesPass(t *testing.T, b *running, replicas []*replica) {
	const limit = 1 << 20
	for _, key := range []string{"", "large"} {
		whole := encode(viewerDocument, nil)
		whole = append(whole, strings.Repeat(" ", limit-len(whole))...)
		out, err := b.try(t.Context(), whole, key)
		require.NoError(t, err)
		require.Equal(t, "alice", out.Data.Viewer.Subject)
		out, err = b.try(t.Context(), append(whole, ' '), key)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestEntityTooLarge, out.status)
		require.Equal(t, "BODY_TOO_LARGE", out.Errors[0].Extensions.Code)
	}

	chosen, _ := route(t, b, replicas, "")
	got := chosen.last(t)
	require.Equal(t, strings.TrimPrefix(b.url, "http://"), got.Host)
	require.Equal(t, "127.0.0.1", got.Header.Get("X-Forwarded-For"))
	require.Equal(t, "http", got.Header.Get("X-Forwarded-Proto"))
	require.Equal(t, got.Host, got.Header.Get("X-Forwarded-Host"))
	require.True(t, got.Close, "a connection for each request, or its loss would not say whether it was sent")
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/balancer-healthz": 200, "/metrics": 404, "/%6detrics": 404} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, nil)
		require.NoError(t, err)
		res, err := plain.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, status, res.StatusCode, path)
	}
}

type answered struct {
	response
	err error
}

// send posts beside the test.
func send(t *testing.T, b *running, key string, body []byte) <-chan answered {
	t.Helper()
	out := make(chan answered, 1)
	go func() {
		res, err := b.try(t.Context(), body, key)
		out <- answered{res, err}
	}()
	return out
}

func (c client) jobs(t *testing.T) int {
	t.Helper()
	return c.post(t, "", `{jobs(first: 1){totalCount}}`, nil).Data.Jobs.TotalCount
}

// The replica has stored the job, and dies before its answer is on the way.
func lostAfterCommit(t *testing.T, b *running, replicas []*replica) {
	const key = "lost after commit"
	chosen, other := route(t, b, replicas, key)
	before, had, others := b.jobs(t), chosen.count(), other.count()
	chosen.loseAnswers()
	answer := send(t, b, key, encode(createDocument, intent(key, nil)))
	await.Until(t, "it has answered into the void", func() bool {
		all := chosen.requests()
		return len(all) > had && all[len(all)-1].lost > 0
	})
	stored := other.direct().post(t, "", byKeyDocument, variables{"key": key}).Data.JobByKey
	require.NotNil(t, stored)
	chosen.kill(t)

	got := <-answer
	require.NoError(t, got.err)
	require.Equal(t, stored.ID, got.Data.CreateJob.Job.ID)
	require.True(t, got.Data.CreateJob.Replayed)
	require.Equal(t, others+1, other.count())
	require.Equal(t, before+1, b.jobs(t))
}

// The replica's machine has taken all of the request, and the process dies before it looks at it.
func largeInput(t *testing.T, b *running, replicas []*replica) {
	const key = "large input"
	text := strings.Repeat("x", 256<<10-len(`{"text":""}`))
	chosen, other := route(t, b, replicas, key)
	before, had, others := b.jobs(t), chosen.count(), other.count()
	require.NoError(t, chosen.process.Signal(syscall.SIGSTOP))
	body := encode(createDocument, intent(key, variables{"input": variables{"text": text}}))
	answer := send(t, b, key, body)
	await.Until(t, "all of it is sent", func() bool {
		all := chosen.requests()
		return len(all) > had && all[len(all)-1].sent > len(body)
	})
	chosen.kill(t)

	got := <-answer
	require.NoError(t, got.err)
	created := got.Data.CreateJob
	require.False(t, created.Replayed)
	require.Equal(t, others+1, other.count())
	var input struct{ Text string }
	require.NoError(t, json.Unmarshal(created.Job.Input, &input))
	require.Len(t, input.Text, len(text))
	require.Equal(t, before+1, b.jobs(t))
}

// The replica hangs, and does what it was asked for after the other one has.
func silence(t *testing.T, b *running, replicas []*replica) {
	b = b.kind.start(t, replicas, " 18s", " 3s") // in less time than is shipped
	const key = "silence"
	chosen, other := route(t, b, replicas, key)
	before, others := b.jobs(t), other.count()
	require.NoError(t, chosen.process.Signal(syscall.SIGSTOP))
	got, err := b.try(t.Context(), encode(createDocument, intent(key, nil)), key)
	require.NoError(t, chosen.process.Signal(syscall.SIGCONT))
	require.Greater(t, other.count(), others)
	if err != nil { // the machine is so busy that the other one was given up too: its client asks again
		await.Until(t, "an answer", func() bool {
			got, err = b.try(t.Context(), encode(createDocument, intent(key, nil)), key)
			return err == nil
		})
	}
	require.Equal(t, key, got.Data.CreateJob.Job.IdempotencyKey)
	await.Until(t, "it has done what it was asked", func() bool { return chosen.under() == 0 })
	require.Equal(t, before+1, chosen.direct().jobs(t))
}

func withoutKey(t *testing.T, b *running, replicas []*replica) {
	const key = "no header"
	counts := func() [2]int { return [2]int{replicas[0].count(), replicas[1].count()} }
	jobs, before := b.jobs(t), counts()
	for _, r := range replicas {
		r.loseAnswers()
	}
	answer := send(t, b, "", encode(createDocument, intent(key, nil)))
	chosen, other := replicas[0], replicas[1]
	await.Until(t, "one has answered into the void", func() bool {
		for i, r := range replicas {
			if all := r.requests(); len(all) > before[i] && all[len(all)-1].lost > 0 {
				chosen, other = r, replicas[1-i]
				return true
			}
		}
		return false
	})
	others := other.count()
	chosen.kill(t)
	got := <-answer
	require.Error(t, got.err, "what came of it is not known")
	require.GreaterOrEqual(t, got.status, 500)
	require.Equal(t, others, other.count(), "not sent again")

	// Its sender may: the key is in the input too.
	direct := other.direct()
	require.True(t, direct.post(t, "", createDocument, intent(key, nil)).Data.CreateJob.Replayed)
	require.Equal(t, jobs+1, direct.jobs(t))
}

// subscriber is one client that watches a job, through as many connections as it takes.
type subscriber struct {
	follow  follow
	mu      sync.Mutex
	numbers []int
	done    chan error // of the connection that is open
}

func (s *subscriber) after() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.numbers) == 0 {
		return 0
	}
	return s.numbers[len(s.numbers)-1]
}

// connect returns when the stream is open. Its end comes on done: nil for a good one.
func (s *subscriber) connect(ctx context.Context, t *testing.T, c client, id string) {
	t.Helper()
	begun, done := make(chan struct{}), make(chan error, 1)
	after := s.after()
	s.done = done
	go func() {
		complete, err := s.follow(ctx, c, id, after, sync.OnceFunc(func() { close(begun) }), func(n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.numbers = append(s.numbers, n)
		})
		if err == nil && !complete {
			err = context.Canceled // it broke off
		}
		done <- err
	}()
	select {
	case <-begun:
	case err := <-done:
		require.NoError(t, err)
	}
}

func subscribersMove(t *testing.T, b *running, replicas []*replica) {
	j := b.post(t, "watched", createDocument, intent("", variables{"target": "demo/fax"})).Data.CreateJob.Job
	// All of them are at one replica, which then dies.
	chosen, other := replicas[0], replicas[1]
	subscribers := map[string]*subscriber{}
	for name, f := range follows {
		for subscribers[name] == nil {
			s := &subscriber{follow: f}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.connect(ctx, t, b.client, j.ID)
			if chosen.under() > len(subscribers) {
				subscribers[name] = s
				continue
			}
			cancel() // it came to the other one
			<-s.done //nolint:errcheck // it was cancelled
			await.Until(t, "it is gone", func() bool { return other.under() == 0 })
		}
	}
	for name, s := range subscribers {
		await.Until(t, "the first event over "+name, func() bool { return s.after() > 0 })
	}
	chosen.kill(t)
	for name, s := range subscribers {
		require.Error(t, <-s.done, name)
	}
	// While nobody watches, something happens.
	b.post(t, "", `mutation($input: CancelAttemptInput!){cancelAttempt(input: $input){__typename}}`, variables{"input": variables{"attemptId": j.Attempts[0].ID}})
	for _, s := range subscribers {
		s.connect(t.Context(), t, b.client, j.ID)
	}
	require.Equal(t, 2, other.under())
	b.post(t, "", `mutation($input: CancelJobInput!){cancelJob(input: $input){__typename}}`, variables{"input": variables{"jobId": j.ID}})
	for name, s := range subscribers {
		require.NoError(t, <-s.done, name)
		var all []int
		for _, e := range b.post(t, "", byKeyDocument, variables{"key": "watched"}).Data.JobByKey.Events {
			all = append(all, e.Number)
		}
		require.Equal(t, all, s.numbers, name)
		for i, n := range all {
			require.Equal(t, i+1, n)
		}
	}
}

// drains has users at work all the time, none of whom may notice.
func drains(t *testing.T, b *running, replicas []*replica) {
	leaving := replicas[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var users sync.WaitGroup
	var served [3]atomic.Int64 // by user
	for user, header := range []bool{true, false, false} {
		users.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key, given := "", fmt.Sprintf("user %d, %d", user, i)
				if header {
					key = given
				}
				out, err := b.try(t.Context(), encode(createDocument, intent(given, nil)), key)
				if err != nil || out.Data.CreateJob.Job.ID == "" {
					t.Errorf("user %d, request %d: status %d, %v, %v", user, i, out.status, out.Errors, err)
					return
				}
				served[user].Add(1)
			}
		})
	}
	defer users.Wait()
	defer cancel()
	await.Until(t, "both are used", func() bool { return replicas[0].count() > 5 && replicas[1].count() > 5 })

	if strings.HasSuffix(b.file, "nginx.conf") {
		b.reload(t, "server "+leaving.addr+" ", "server "+leaving.addr+" down ")
		require.NoError(t, leaving.process.Signal(syscall.SIGTERM))
	} else {
		require.NoError(t, leaving.process.Signal(syscall.SIGTERM))
		await.Until(t, "its health check fails", func() bool {
			return strings.Contains(b.log(t), "Server docket/"+leaving.name+" is DOWN, reason: Layer7 wrong status, code: 503")
		})
	}
	more := func() { // what each had under way before is answered
		t.Helper()
		for user := range served {
			at := served[user].Load()
			await.Until(t, "everybody is served", func() bool { return served[user].Load() >= at+2 || t.Failed() })
		}
	}
	more()
	had := leaving.count()
	<-leaving.process.Exited()
	require.Zero(t, leaving.process.ExitCode())
	leaving.process = nil
	more()
	require.Equal(t, had, leaving.count(), "nothing new")
}

// reload is nginx's: it returns when no process works by the old file.
func (b *running) reload(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(b.file)
	require.NoError(t, err)
	require.Contains(t, string(raw), from)
	require.NoError(t, os.WriteFile(b.file, []byte(strings.Replace(string(raw), from, to, 1)), 0o600))
	started := strings.Count(b.log(t), ": start worker process ")
	require.Positive(t, started)
	require.NoError(t, b.cmd.Process.Signal(syscall.SIGHUP))
	await.Until(t, "the old workers end", func() bool { return strings.Count(b.log(t), " exited with code 0") >= started })
}
