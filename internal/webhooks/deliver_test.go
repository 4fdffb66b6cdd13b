package webhooks

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/store"
)

// verify does what a receiver has to do, by the specification's own library.
func verify(t *testing.T, m received, secret string) {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, w.Verify(m.body, m.header))
	require.Error(t, w.Verify(append(m.body, ' '), m.header))
}

func TestTellsEveryEndOfAJob(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		end   job.State
		bring func(t *testing.T, p *process, id string)
	}{
		{job.StateSUCCEEDED, func(t *testing.T, p *process, id string) {
			t.Helper()
			p.settle(t, p.job(t, id), jobs.Outcome{Output: json.RawMessage(`{"answer":"forty-two"}`)})
		}},
		{job.StateFAILED, func(t *testing.T, p *process, id string) {
			t.Helper()
			p.settle(t, p.job(t, id), jobs.Outcome{Failure: &jobs.Failure{Code: "NO", Message: "The provider said no."}})
		}},
		{job.StateCANCELLED, func(t *testing.T, p *process, id string) { t.Helper(); p.cancel(t, p.job(t, id)) }},
	} {
		t.Run(string(tc.end), func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, address string) {
				p, r := start(t, address, oldSecret), newReceiver(t, http.StatusNoContent)
				p.work(t)
				j := p.create(t, r.URL+"/hook?token=abc")
				tc.bring(t, p, j.ID)
				j = p.job(t, j.ID)
				require.Equal(t, tc.end, j.State)

				m := await.Receive(t, "delivery", r.got)
				verify(t, m, oldSecret)
				require.Equal(t, "POST /hook?token=abc", m.header.Get("Test-Path"))
				require.Equal(t, "application/json", m.header.Get("Content-Type"))
				require.Equal(t, j.ID+"_"+strconv.Itoa(j.LastEvent), m.header.Get("webhook-id"))
				var got message
				require.NoError(t, json.Unmarshal(m.body, &got))
				require.WithinDuration(t, time.Now(), got.Timestamp, time.Minute)
				got.Timestamp = time.Time{}
				require.Equal(t, message{Type: "job." + strings.ToLower(string(tc.end)), Data: data{
					JobID: j.ID, IdempotencyKey: j.IdempotencyKey, State: string(tc.end), Version: j.Version, EventNumber: j.LastEvent,
				}}, got)
				require.NotContains(t, string(m.body), "forty-two", "the result is not for everybody who holds the URL")
				require.Equal(t, ResultDelivered, await.Receive(t, "result", p.results))
			})
		})
	}
}

func TestTellsBothEndsOfAJobThatWasReopened(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		p, r := start(t, address, oldSecret), newReceiver(t, http.StatusOK)
		j := p.create(t, r.URL)
		p.settle(t, j, jobs.Outcome{Failure: &jobs.Failure{Code: "NO", Message: "The provider said no."}})
		failed := p.job(t, j.ID)
		_, err := p.StartAttempt(p.ann, j.ID, nil)
		require.NoError(t, err)
		p.settle(t, j, jobs.Outcome{Output: json.RawMessage(`{}`)})
		done := p.job(t, j.ID)

		p.work(t)
		versions := map[string]int{}
		for range 2 {
			m := await.Receive(t, "delivery", r.got)
			verify(t, m, oldSecret)
			var got message
			require.NoError(t, json.Unmarshal(m.body, &got))
			versions[m.header.Get("webhook-id")+" "+got.Type] = got.Data.Version
		}
		require.Equal(t, map[string]int{
			j.ID + "_" + strconv.Itoa(failed.LastEvent) + " job.failed":  failed.Version, // as it was then
			j.ID + "_" + strconv.Itoa(done.LastEvent) + " job.succeeded": done.Version,
		}, versions)
	})
}

func TestRepeatsTheSameMessageUntilItIsTaken(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		p := start(t, address, oldSecret, newSecret)
		// A redirect is a failure too: nobody comes to /elsewhere.
		r := newReceiver(t, http.StatusInternalServerError, http.StatusFound, http.StatusTemporaryRedirect, http.StatusNotFound, http.StatusOK)
		p.work(t)
		p.cancel(t, p.create(t, r.URL+"/hook"))
		first := await.Receive(t, "first try", r.got)
		for i := range 5 {
			m := first
			if i > 0 {
				m = await.Receive(t, "next try", r.got)
			}
			verify(t, m, oldSecret)
			verify(t, m, newSecret)
			require.Equal(t, "POST /hook", m.header.Get("Test-Path"))
			require.Equal(t, first.header.Get("webhook-id"), m.header.Get("webhook-id"))
			require.Equal(t, string(first.body), string(m.body))
			want := ResultRetried
			if i == 4 {
				want = ResultDelivered
			}
			require.Equal(t, want, await.Receive(t, "result", p.results))
		}
		await.Until(t, "the delivery is over", func() bool { return p.entries(t, "completed") == 1 })
		require.Empty(t, r.got)
	})
}

func TestWaitsForAReceiverThatIsDown(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		p := start(t, address, oldSecret)
		r := newReceiver(t, http.StatusOK)
		at := r.Listener.Addr().String()
		r.Close()
		p.hooks.backoff = func(int) time.Duration { return 100 * time.Millisecond }
		p.work(t)
		p.cancel(t, p.create(t, "http://"+at+"/hook?token=hunter2"))
		require.Equal(t, ResultRetried, await.Receive(t, "failed try", p.results))

		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
		require.NoError(t, err)
		up := &httptest.Server{Listener: l, Config: &http.Server{Handler: r}} //nolint:gosec // no stranger calls it
		up.Start()
		t.Cleanup(up.Close)
		verify(t, await.Receive(t, "delivery", r.got), oldSecret)

		await.Until(t, "the delivery is over", func() bool { return p.entries(t, "completed") == 1 })
		var errs string
		require.NoError(t, p.store.DB().QueryRowContext(t.Context(), "SELECT CAST(errors AS text) FROM river_job WHERE kind = 'webhook'").Scan(&errs))
		for _, text := range []string{errs, p.log.String()} {
			require.Contains(t, text, "refused")
			require.NotContains(t, text, "hunter2", "a receiver's token is not ours to tell")
			require.NotContains(t, text, strings.TrimPrefix(oldSecret, secretPrefix))
		}
	})
}

func TestStopsWhenTheReceiverSaysGone(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		p, r := start(t, address, oldSecret), newReceiver(t, http.StatusGone)
		p.work(t)
		p.cancel(t, p.create(t, r.URL))
		require.Equal(t, ResultGone, await.Receive(t, "result", p.results))
		await.Until(t, "the delivery is over", func() bool { return p.entries(t, "cancelled") == 1 })
		require.Len(t, r.got, 1)
	})
}

func TestGivesUpAfterTheLastTry(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		p, r := start(t, address, oldSecret), newReceiver(t, http.StatusServiceUnavailable)
		p.cancel(t, p.create(t, r.URL))
		p.exec(t, "UPDATE river_job SET max_attempts = 2 WHERE kind = 'webhook'")
		p.work(t)
		require.Equal(t, ResultRetried, await.Receive(t, "first result", p.results))
		require.Equal(t, ResultAbandoned, await.Receive(t, "second result", p.results))
		await.Until(t, "the delivery is over", func() bool { return p.entries(t, "discarded") == 1 })
		require.Contains(t, p.log.String(), "webhook given up")
	})
}

func TestWaitsAsLongAsTheReceiverAsks(t *testing.T) {
	t.Parallel()
	const own = 10 * time.Minute
	for name, tc := range map[string]struct {
		status int
		after  string
		wait   time.Duration
	}{
		"Seconds":        {http.StatusTooManyRequests, "3600", time.Hour},
		"Date":           {http.StatusServiceUnavailable, time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat), 2 * time.Hour},
		"AtMost":         {http.StatusServiceUnavailable, "99999999", longest},
		"NeverShorter":   {http.StatusTooManyRequests, "1", own},
		"OtherStatus":    {http.StatusInternalServerError, "3600", own},
		"Malformed":      {http.StatusServiceUnavailable, "soon", own},
		"DateThatIsOver": {http.StatusServiceUnavailable, "Sun, 06 Nov 1994 08:49:37 GMT", own},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, address string) {
				p, r := start(t, address, oldSecret), newReceiver(t, tc.status)
				r.after = tc.after
				p.hooks.backoff = func(int) time.Duration { return own }
				p.cancel(t, p.create(t, r.URL))
				before := time.Now()
				p.work(t)
				require.Equal(t, ResultRetried, await.Receive(t, "result", p.results))
				await.Until(t, "the delivery waits", func() bool { return p.entries(t, "retryable") == 1 })
				list, err := p.client.JobList(t.Context(), river.NewJobListParams().Kinds(entryArgs{}.Kind()))
				require.NoError(t, err)
				require.Len(t, list.Jobs, 1)
				// A date has whole seconds; up to a tenth is added.
				require.WithinRange(t, list.Jobs[0].ScheduledAt, before.Add(tc.wait-await.Patience), time.Now().Add(tc.wait+tc.wait/10+time.Second))
				require.Equal(t, 1, list.Jobs[0].Attempt, "the try counts")
				require.Equal(t, maxTries, list.Jobs[0].MaxAttempts)
			})
		})
	}
}

func TestNextProcessDelivers(t *testing.T) {
	t.Parallel()

	t.Run("WhatWasCommittedOnly", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, address string) {
			r := newReceiver(t, http.StatusOK)
			died := start(t, address, oldSecret)
			died.cancel(t, died.create(t, r.URL))
			died.stop()

			p := start(t, address, oldSecret)
			p.work(t)
			verify(t, await.Receive(t, "delivery", r.got), oldSecret)
		})
	})

	t.Run("WhatADeadProcessHadBegun", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, address string) {
			r := newReceiver(t, http.StatusOK)
			p := start(t, address, oldSecret)
			p.cancel(t, p.create(t, r.URL))
			// It may have been delivered or not: nobody knows, so it is delivered again.
			p.exec(t, "UPDATE river_job SET state = 'running', attempt = 1, attempted_at = "+p.store.Now(-3*time.Minute)+" WHERE kind = 'webhook'")
			p.work(t)
			verify(t, await.Receive(t, "delivery", r.got), oldSecret) // River elects a leader, looks for dead entries and then for due ones
		})
	})

	t.Run("WhatAProcessWithoutASecretKept", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, address string) {
			r := newReceiver(t, http.StatusOK)
			p := start(t, address, oldSecret)
			j := p.create(t, r.URL)

			poor := start(t, address)
			poor.work(t)
			_, err := poor.Create(poor.ann, jobs.CreateInput{IdempotencyKey: new("other"), Task: "plain", Input: json.RawMessage(`{}`), CallbackURL: &r.URL})
			var invalid *jobs.InvalidInputError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, []jobs.Issue{{Path: "/callbackUrl", Message: "completion webhooks are not configured here"}}, invalid.Issues)
			poor.cancel(t, j)
			require.Equal(t, 1, poor.entries(t, "available"))

			p.work(t)
			verify(t, await.Receive(t, "delivery", r.got), oldSecret)
			require.Empty(t, poor.results)
		})
	})
}

func TestKeepsNothingOfATransactionThatIsRolledBack(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		p := start(t, address, oldSecret)
		boom := errors.New("boom")
		err := p.store.Tx(p.sys, func(tx *store.Tx) error {
			require.NoError(t, p.hooks.Enqueue(p.sys, tx, jobs.Completion{JobID: "job_1", State: job.StateFAILED, Event: 3}))
			return boom
		})
		require.ErrorIs(t, err, boom)
		require.Zero(t, p.entries(t, "available"))
	})
}

func TestTriesForAGoodDay(t *testing.T) {
	t.Parallel()
	var sum time.Duration
	last := time.Duration(0)
	for try := 1; try < maxTries; try++ {
		d := backoff(try)
		require.GreaterOrEqual(t, d, last)
		require.LessOrEqual(t, d, longest+longest/10)
		sum += d
		last = min(d, longest)
	}
	require.Greater(t, sum, 24*time.Hour)
	require.Less(t, sum, 36*time.Hour)
	require.Less(t, backoff(1), 6*time.Second)
}
