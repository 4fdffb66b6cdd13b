package webclients

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/config"
)

// Each client makes a job, meets it again, conflicts with it, watches it, and is cut off twice: it comes back to the other
// gateway, and to the first one, and has missed nothing (node/scenario.mjs).
func TestWebClients(t *testing.T) {
	t.Parallel()
	w := open(t)
	urls := gateways(t, 2, func(*config.Config) {})
	env := []string{"WEBCLIENTS_URLS=" + strings.Join(urls, " ")}

	t.Run("TheAuditsOfGraphQLOverHTTPPass", func(t *testing.T) {
		var report struct {
			Counts map[string]struct{ OK, All int }
			Broken []struct{ Level, ID, Name, Reason string }
		}
		out := w.run(t, w.clients, env, "audit.mjs")
		require.NoError(t, json.Unmarshal([]byte(out), &report), out)
		t.Logf("MUST %+v, SHOULD %+v, MAY %+v", report.Counts["MUST"], report.Counts["SHOULD"], report.Counts["MAY"])
		for _, b := range report.Broken {
			require.Equal(t, "MAY", b.Level, "%s: %s: %s", b.ID, b.Name, b.Reason)
			t.Logf("not kept: %s: %s: %s", b.ID, b.Name, b.Reason)
		}
		// Of an audit that asks nothing, nothing could fail.
		require.Equal(t, 13, report.Counts["MUST"].OK)
		require.Equal(t, 23, report.Counts["SHOULD"].OK)
	})

	for _, program := range []string{"graphql-ws.mjs", "graphql-sse.mjs", "apollo.mjs", "urql.mjs", "docket.mjs"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			requireScenario(t, w.run(t, w.clients, env, program))
		})
	}

	t.Run("relay.mjs", func(t *testing.T) {
		t.Parallel()
		w.run(t, w.clients, env, "schema.mjs", "schema.graphql")
		w.run(t, w.clients, env, "node_modules/relay-compiler/cli.js", "relay.config.json")
		requireScenario(t, w.run(t, w.clients, env, "relay.mjs"))
	})

	t.Run("TheTypeScriptClientInABrowser", func(t *testing.T) {
		t.Parallel()
		requireBrowserKeepsIntent(t, w, urls[0])
	})

	t.Run("TheExampleOfTheTypeScriptClientIsOneJobHoweverOftenItIsLoaded", func(t *testing.T) {
		t.Parallel()
		out := w.run(t, w.clients, nil, "pageloads.mjs", urls[0], filepath.Join(w.own, "examples", "triage.mjs"))
		require.Contains(t, out, "demo/laser")
		require.Equal(t, 3, strings.Count(out, `SUCCEEDED {"category":"billing"`))
	})
}

func requireScenario(t *testing.T, out string) {
	t.Helper()
	var report struct{ Events, Connections int }
	require.NoError(t, json.Unmarshal([]byte(out), &report), out)
	require.GreaterOrEqual(t, report.Events, 8)
	require.GreaterOrEqual(t, report.Connections, 3)
	t.Log(strings.TrimSpace(out))
}
