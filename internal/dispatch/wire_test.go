package dispatch

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/providertest"
)

// overWire is a registry whose requests go over loopback.
func overWire(t *testing.T, url string, change func(*providers.Config)) *providers.Registry {
	t.Helper()
	cfg := providers.Config{Name: "fake", Kind: openaicompat.Kind, BaseURL: url, AckTimeout: await.Patience, IdleTimeout: await.Patience,
		TotalTimeout: await.Patience, Linger: await.Patience, Models: []providers.Model{{Name: "a"}, {Name: "b"}}}
	if change != nil {
		change(&cfg)
	}
	r, err := providers.NewRegistry([]providers.Config{cfg}, map[string]providers.Factory{openaicompat.Kind: openaicompat.New})
	require.NoError(t, err)
	return r
}

func TestTheWireCarriesTheAttemptOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		fake, url := providertest.Start(t)
		fake.Enqueue(providertest.Says(good, "stop"))
		p := start(t, address, options{registry: overWire(t, url, nil)})
		j, a := p.create(t, "single")
		a = p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		require.Len(t, fake.Log(), 1)
		require.Equal(t, a.ID, fake.Log()[0].Key)
		require.Equal(t, "a", fake.Log()[0].Model)
		require.False(t, fake.Log()[0].At.Before(a.SentAt.Add(-time.Second)), "marked first")
		require.Equal(t, "req_fake_1", *a.ProviderRequestID)
		require.Equal(t, 11, *a.InputTokens)
		require.JSONEq(t, good, string(p.job(t, j.ID).Result))
	})
}

// TestLostConnections: what the provider may have read is UNKNOWN and is not sent again, neither by a retry that the task
// allows nor by the HTTP client.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		fake, url := providertest.Start(t)
		p := start(t, address, options{registry: overWire(t, url, nil)})
		for _, b := range []providertest.Behaviour{providertest.Reset(), providertest.Drop(), providertest.CutAfter(1), providertest.DropAfter(1)} {
			fake.Enqueue(b)
			j, a := p.create(t, "retry")
			p.becomes(t, a.ID, attempt.StateUNKNOWN)
			require.Len(t, p.attempts(t, j.ID), 1)
			require.Equal(t, 1, fake.Count(a.ID))
		}
	})
}

// TestTheRouteGoesOnWhereNobodyListens: what was never sent is safe to send elsewhere.
func TestTheRouteGoesOnWhereNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String() + "/v1"
	require.NoError(t, l.Close())
	p := start(t, databases.SQLite(t), options{registry: overWire(t, url, nil)})
	j, _ := p.create(t, "route")
	await.Until(t, "the route goes on", func() bool { return p.job(t, j.ID).State == job.StateFAILED })
	for i, a := range p.attempts(t, j.ID) {
		require.Equal(t, attempt.StateFAILED, a.State)
		require.Equal(t, providers.CodeUnreachable, *a.ErrorCode)
		require.Equal(t, []string{"fake/a", "fake/b"}[i], a.Target)
	}
}

// TestASilentProviderIsHungUpOnWhenItsAttemptIsCancelled looks at the wire from the provider's end.
func TestASilentProviderIsHungUpOnWhenItsAttemptIsCancelled(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		fake, url := providertest.Start(t)
		gone := make(chan bool, 1)
		fake.Enqueue(func(x *providertest.Exchange) {
			x.Headers()
			gone <- !x.Until(nil)
		})
		p := start(t, address, options{lease: time.Hour, registry: overWire(t, url, func(c *providers.Config) { c.IdleTimeout = 100 * time.Millisecond })})
		_, a := p.create(t, "single")
		a = p.becomes(t, a.ID, attempt.StateUNKNOWN)
		require.Equal(t, providers.CodeIdleTimeout, *a.ErrorCode)
		_, err := p.CancelAttempt(p.ann, a.ID, nil)
		require.NoError(t, err)
		require.True(t, await.Receive(t, "end of the connection", gone))
	})
}

// inBackground is a registry of OpenAI's kind whose requests run at the account by themselves.
func inBackground(t *testing.T, url string) *providers.Registry {
	t.Helper()
	r, err := providers.NewRegistry([]providers.Config{{Name: "fake", Kind: openai.Kind, BaseURL: url, APIKey: "k", Background: true, StrictSchema: true,
		AckTimeout: await.Patience, IdleTimeout: 100 * time.Millisecond, TotalTimeout: await.Patience, Linger: time.Hour,
		Models: []providers.Model{{Name: "a"}, {Name: "b"}}}}, map[string]providers.Factory{openai.Kind: openai.New})
	require.NoError(t, err)
	return r
}

// TestABackgroundResponseIsSettledByAsking: its handle is on the attempt before anything else, so that what becomes of the
// connection does not matter.
func TestABackgroundResponseIsSettledByAsking(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		account := openaitest.NewAccount()
		fake, url := providertest.StartOf(t, account.Protocol())
		fake.Enqueue(account.Runs())
		p := start(t, address, options{lease: 15 * time.Second, registry: inBackground(t, url)}) // p.reconciled waits for the third of it
		j, a := p.create(t, "single")
		a = p.becomes(t, a.ID, attempt.StateUNKNOWN)
		require.Equal(t, "resp_fake_1", *a.ProviderHandle)
		account.Put("resp_fake_1", "completed", good)
		p.later(t, a)
		p.reconciled(t)
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		require.JSONEq(t, good, string(p.job(t, j.ID).Result))
		require.Equal(t, 1, fake.Count(a.ID), "it was sent once")
	})
}

// TestABackgroundResponseIsCancelledWithItsAttempt: nobody wants its answer any more.
func TestABackgroundResponseIsCancelledWithItsAttempt(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		account := openaitest.NewAccount()
		fake, url := providertest.StartOf(t, account.Protocol())
		fake.Enqueue(account.Runs())
		p := start(t, address, options{lease: time.Hour, registry: inBackground(t, url)})
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateUNKNOWN)
		_, err := p.CancelAttempt(p.ann, a.ID, nil)
		require.NoError(t, err)
		await.Until(t, "the response is cancelled", func() bool { return len(account.Cancelled()) == 1 })
	})
}
