package apikeys

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/privacy"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/viewer"
)

func TestAKeyStandsForItsOwner(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		key, row := b.create(t)
		operator, _ := b.create(t, func(n *NewKey) { n.Operator, n.Expires = true, time.Now().Add(time.Hour) })
		got, err := b.keys.Verify(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, viewer.Viewer{Issuer: "https://issuer.example", Subject: "alice"}, got.Viewer)
		require.Zero(t, got.Expires)
		other, err := b.keys.Verify(t.Context(), operator)
		require.NoError(t, err)
		require.True(t, other.Viewer.Operator)
		require.WithinDuration(t, time.Now().Add(time.Hour), other.Expires, time.Minute)
		require.Equal(t, got.Viewer.OwnerID(), other.Viewer.OwnerID(), "one owner, whichever the key")
		require.NotContains(t, string(b.row(t, row.ID).Hash), key)
		require.NotContains(t, row.String(), string(row.Hash), "it prints without")
	})
}

func TestOtherKeysAreRefused(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		key, row := b.create(t)
		short, _ := b.create(t, func(n *NewKey) { n.Expires = time.Now().Add(time.Hour) })
		gone, revoked := b.create(t)
		_, err := Revoke(t.Context(), b.client, revoked.ID, "tester")
		require.NoError(t, err)
		_, stranger := generate()
		forged := key[:30] + stranger[30:checkedLength]
		forged += checksum(forged)
		goneForged := gone[:30] + stranger[30:checkedLength]
		goneForged += checksum(goneForged)
		b.advance(time.Hour)
		for name, c := range map[string]struct{ key, says string }{
			"NoKey":                     {"dk_nonsense", "not an API key"},
			"Unknown":                   {stranger, "there is no such API key"},
			"OtherSecret":               {forged, "there is no such API key"},
			"Revoked":                   {gone, "were revoked"},
			"OtherSecretOfARevokedOne":  {goneForged, "there is no such API key"},
			"Expired":                   {short, "have expired"},
			"IDInPlaceOfTheKey":         {row.ID, "not an API key"},
			"HashInPlaceOfTheKey":       {string(row.Hash), "not an API key"},
			"TheKeyAndSomethingElse":    {key + "x", "not an API key"},
			"TheKeyOfAnotherCheckDigit": {key[:len(key)-1] + "!", "not an API key"},
		} {
			got, err := b.keys.Verify(t.Context(), c.key)
			require.ErrorIs(t, err, auth.ErrUnauthenticated, name)
			require.ErrorContains(t, err, c.says, name)
			require.NotContains(t, err.Error(), c.key[len(c.key)-10:], name)
			require.Zero(t, got, name)
		}
		_, err = b.keys.Verify(t.Context(), key)
		require.NoError(t, err)
	})
}

// What a request costs: nothing most of the time.
func TestAKeyIsReadOnceForManyRequestsAndItsUseWrittenOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		key, row := b.create(t)
		b.reads.Store(0)
		many := func() {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if _, err := b.keys.Verify(t.Context(), key); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		many()
		require.Equal(t, int64(1), b.reads.Load())
		require.Equal(t, int64(1), b.writes.Load())
		used := b.row(t, row.ID).LastUsedAt
		require.NotNil(t, used)
		require.WithinDuration(t, time.Now(), *used, time.Minute)

		b.advance(DefaultMaxAge)
		many()
		require.Equal(t, int64(2), b.reads.Load())
		require.Equal(t, int64(1), b.writes.Load())

		b.advance(DefaultUsedEvery)
		many()
		require.Equal(t, int64(3), b.reads.Load())
		require.Equal(t, int64(2), b.writes.Load())
		require.Greater(t, *b.row(t, row.ID).LastUsedAt, *used)
	})
}

func TestWhoGuessesDoesNotUseTheKey(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		key, row := b.create(t)
		_, stranger := generate()
		forged := key[:30] + stranger[30:checkedLength]
		_, err := b.keys.Verify(t.Context(), forged+checksum(forged))
		require.ErrorIs(t, err, auth.ErrUnauthenticated)
		require.Nil(t, b.row(t, row.ID).LastUsedAt)
	})
}

func TestARevokedKeyIsRefusedByEveryProcessWithinItsAge(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		key, row := b.create(t)
		processes := []*Keys{b.keys, b.another(Options{})}
		for _, k := range processes {
			_, err := k.Verify(t.Context(), key)
			require.NoError(t, err)
		}
		again, err := Revoke(t.Context(), b.client, row.ID, "tester")
		require.NoError(t, err)
		require.False(t, again)
		b.advance(DefaultMaxAge)
		for _, k := range processes {
			_, err := k.Verify(t.Context(), key)
			require.ErrorIs(t, err, auth.ErrRevoked)
		}
	})
}

func TestOpenConnectionsOfARevokedKeyEnd(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		keys := b.another(Options{MaxAge: 5 * time.Millisecond})
		life, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { keys.Run(life) })
		defer wg.Wait()
		defer end()
		key, row := b.create(t)
		other, _ := b.create(t)
		open := func(key string) context.Context {
			id, err := keys.Verify(t.Context(), key)
			require.NoError(t, err)
			ctx, cancel := id.Bound(t.Context())
			t.Cleanup(cancel)
			return ctx
		}
		first, second, others := open(key), open(key), open(other)
		_, err := Revoke(t.Context(), b.client, row.ID, "tester")
		require.NoError(t, err)
		for _, ctx := range []context.Context{first, second} {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), auth.ErrRevoked)
		}
		require.NoError(t, others.Err())
		_, err = keys.Verify(t.Context(), key)
		require.ErrorIs(t, err, auth.ErrRevoked)
	})
}

func TestAClosedConnectionIsForgotten(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		key, _ := b.create(t)
		id, err := b.keys.Verify(t.Context(), key)
		require.NoError(t, err)
		ctx, cancel := id.Bound(t.Context())
		require.Len(t, b.keys.open, 1)
		cancel()
		<-ctx.Done()
		await.Until(t, "the connection is forgotten", func() bool {
			b.keys.mu.Lock()
			defer b.keys.mu.Unlock()
			return len(b.keys.open) == 0
		})
		b.reads.Store(0)
		require.NoError(t, b.keys.look(t.Context()))
		require.Zero(t, b.reads.Load(), "without open connections nothing is asked")
	})
}

func TestADatabaseThatDoesNotAnswerIsNoRefusal(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		key, _ := b.create(t)
		require.NoError(t, b.store.Close())
		_, err := b.keys.Verify(t.Context(), key)
		require.ErrorIs(t, err, auth.ErrUnavailable)
		require.NotErrorIs(t, err, auth.ErrUnauthenticated)
		require.NotContains(t, b.log.String(), key)
		require.NotContains(t, b.log.String(), key[30:])
	})
}

func TestNobodyReadsOrWritesKeysThroughARequest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		_, row := b.create(t)
		for name, ctx := range map[string]context.Context{
			"Nobody":   t.Context(),
			"Owner":    viewer.NewContext(t.Context(), viewer.Viewer{Issuer: row.Issuer, Subject: row.Subject}),
			"Operator": viewer.NewContext(t.Context(), viewer.Viewer{Issuer: "i", Subject: "o", Operator: true}),
		} {
			_, err := b.client.APIKey.Query().All(ctx)
			require.ErrorIs(t, err, privacy.Deny, name)
			_, err = b.client.APIKey.Query().Count(ctx)
			require.ErrorIs(t, err, privacy.Deny, name)
			require.ErrorIs(t, b.client.APIKey.Update().SetRevokedBy("x").Exec(ctx), privacy.Deny, name)
			_, err = b.client.APIKey.Delete().Exec(ctx)
			require.ErrorIs(t, err, privacy.Deny, name)
			require.ErrorIs(t, b.client.APIKey.Create().SetHash([]byte("x")).SetIssuer("i").SetSubject("s").SetOperator(true).
				SetNote("").SetCreatedBy("x").Exec(ctx), privacy.Deny, name)
		}
	})
}
