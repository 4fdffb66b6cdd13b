package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/apikeys"
	"github.com/docket-gateway/docket/internal/app"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/store"
)

// gateway is a whole one in mode token, with one API key.
type gateway struct {
	url, key string
	revoke   func(t *testing.T)
}

func startGateway(t *testing.T) *gateway {
	t.Helper()
	address := "sqlite://" + filepath.Join(t.TempDir(), "docket.db")
	cfg := config.Default()
	cfg.Listen, cfg.Database, cfg.Tasks = "127.0.0.1:0", config.NewDSN(address), []string{"../../../contracts/tasks"}
	cfg.Auth.Mode, cfg.Auth.APIKeys = config.AuthModeToken, true
	running, err := app.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		bound, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cancel() // nothing is worth waiting for
		_ = running.Stop(bound)
	})
	s, err := store.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	key, row, err := apikeys.Create(t.Context(), s.Client(), apikeys.NewKey{Issuer: "https://issuer.example", Subject: "alice", By: "tester"})
	require.NoError(t, err)
	return &gateway{url: "http://" + running.Addr(), key: key, revoke: func(t *testing.T) {
		t.Helper()
		_, err := apikeys.Revoke(t.Context(), s.Client(), row.ID, "tester")
		require.NoError(t, err)
	}}
}

// openJob returns the id of a job that stays open: nobody ever answers a fax.
func (g *gateway) openJob(t *testing.T) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": `mutation { createJob(input: {idempotencyKey: "fax", task: "triage",
		input: {subject: "s", text: "t"}, target: "demo/fax", fallbacks: []}) { ... on CreateJobSuccess { job { id } } } }`})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/graphql", bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+g.key)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	var answer struct {
		Data struct {
			CreateJob struct{ Job struct{ ID string } }
		}
	}
	require.NoError(t, json.Unmarshal(text, &answer))
	require.NotEmpty(t, answer.Data.CreateJob.Job.ID, "%s", text)
	return answer.Data.CreateJob.Job.ID
}
