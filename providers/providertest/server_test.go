package providertest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers/providertest"
)

func post(t *testing.T, url, key, model string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader(`{"model":"`+model+`"}`))
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestScriptsGoByQueueThenKeyThenModelThenName(t *testing.T) {
	t.Parallel()
	s, url := providertest.Start(t)
	s.Enqueue(providertest.Error(401, "queue"))
	s.OnKey("k", providertest.Error(402, "key"))
	s.OnModel("m", providertest.Error(403, "model"))
	for _, want := range []int{401, 402} {
		status, _ := post(t, url, "k", "m")
		require.Equal(t, want, status)
	}
	status, _ := post(t, url, "other", "m")
	require.Equal(t, 403, status)
	status, _ = post(t, url, "other", "fail-529")
	require.Equal(t, 529, status)
	status, body := post(t, url, "other", "any")
	require.Equal(t, 200, status)
	require.Contains(t, body, "[DONE]")
	require.Equal(t, 2, s.Count("k"))
	require.Equal(t, 3, s.Count("other"))
}

func TestLogIsReadOverHTTP(t *testing.T) {
	t.Parallel()
	_, url := providertest.Start(t)
	post(t, url, "a", "ok")
	post(t, url, "b", "ok")
	resp, err := http.Get(strings.TrimSuffix(url, "/v1") + "/log?key=b") //nolint:noctx // a test
	require.NoError(t, err)
	defer resp.Body.Close()
	var entries []providertest.Entry
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&entries))
	require.Len(t, entries, 1)
	require.Equal(t, "b", entries[0].Key)
	require.Equal(t, 2, entries[0].Number)
	require.True(t, entries[0].Whole)
	require.JSONEq(t, `{"model":"ok"}`, string(entries[0].Body))
}

func TestHoldsUntilReleased(t *testing.T) {
	t.Parallel()
	s, url := providertest.Start(t)
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(`{"model":"hold"}`)) //nolint:noctx // a test
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		answered <- string(b)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	require.NoError(t, s.Wait(ctx, 1))
	require.Empty(t, answered)
	s.Release()
	require.Contains(t, <-answered, "[DONE]")
}

func TestByModelName(t *testing.T) {
	t.Parallel()
	_, url := providertest.Start(t)
	status, body := post(t, url, "k", "error-502")
	require.Equal(t, 502, status)
	require.Contains(t, body, "<html>")
	status, body = post(t, url, "k", "ok-slow-1ms")
	require.Equal(t, 200, status)
	require.Contains(t, body, "[DONE]")
	_, body = post(t, url, "k", "cut")
	require.NotContains(t, body, "[DONE]")
}
