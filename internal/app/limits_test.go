package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/config"
)

const allowed = "https://app.example.com"

// TestLimitsOfTheConfigurationReachTheEndpoint: what each one does is tested where it is.
func TestLimitsOfTheConfigurationReachTheEndpoint(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	file := filepath.Join(t.TempDir(), "documents.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"who": "{ viewer { subject } }", "create": `+quoted(create)+`,
		"watch": "subscription($id: ID!) { jobEvents(jobId: $id) { number } }"}`), 0o600))
	cfg.TrustedDocuments = config.TrustedDocuments{Manifest: file, Required: true}
	cfg.Introspection = false
	cfg.AllowedOrigins = []string{allowed}
	cfg.Limits.OpenJobsPerOwner, cfg.Limits.SocketsPerOwner, cfg.Limits.OperationsPerSocket = 1, 1, 1
	cfg.Limits.SocketLifetime = 10 * time.Second
	cfg.Limits.RequestsPerMinute, cfg.Limits.Burst = 1, 7
	g := serve(t, cfg)
	send := func(method, body string, header ...string) (int, http.Header, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.addr+"/graphql", bytes.NewReader([]byte(body)))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		var text bytes.Buffer
		_, err = text.ReadFrom(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, resp.Header, text.String()
	}

	status, header, _ := send(http.MethodOptions, "", "Origin", allowed, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,idempotency-key")
	require.Equal(t, http.StatusNoContent, status)
	require.Equal(t, allowed, header.Get("Access-Control-Allow-Origin"))

	status, header, text := send(http.MethodPost, `{"documentId":"who"}`, "Origin", allowed, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, allowed, header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, text, `"local"`)
	_, _, text = send(http.MethodPost, `{"query":"{ __typename }"}`)
	require.Contains(t, text, "DOCUMENT_NOT_TRUSTED")

	// demo/fax does not end while the test runs.
	input := func(key string) string {
		return `{"documentId":"create","variables":{"input":{"idempotencyKey":"` + key + `","task":"triage","target":"demo/fax","input":{"text":"Hello."}}}}`
	}
	_, _, text = send(http.MethodPost, input("a"))
	require.Contains(t, text, "CreateJobSuccess")
	id := regexp.MustCompile(`job_[0-9a-z]+`).FindString(text)
	_, _, text = send(http.MethodPost, input("b"))
	require.Contains(t, text, "InvalidInput")
	require.Contains(t, text, "not finished")
	_, _, text = send(http.MethodPost, input("a"))
	require.Contains(t, text, "CreateJobSuccess", "a replay is no other job")

	dial := func() *websocket.Conn {
		c, _, err := websocket.Dial(t.Context(), "ws://"+g.addr+"/graphql", &websocket.DialOptions{
			HTTPClient: client, Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Origin": {allowed}},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.CloseNow() })
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"connection_init"}`)))
		return c
	}
	first := dial()
	_, message, err := first.Read(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(message), "connection_ack")
	subscribe := func(operation string) string {
		require.NoError(t, first.Write(t.Context(), websocket.MessageText,
			[]byte(`{"id":"`+operation+`","type":"subscribe","payload":{"documentId":"watch","variables":{"id":"`+id+`"}}}`)))
		for {
			_, message, err := first.Read(t.Context())
			require.NoError(t, err)
			if strings.Contains(string(message), `"`+operation+`"`) {
				return string(message)
			}
		}
	}
	require.Contains(t, subscribe("one"), `"next"`)
	require.Contains(t, subscribe("two"), "TOO_MANY_OPERATIONS")
	_, _, err = dial().Read(t.Context())
	require.EqualValues(t, 4430, websocket.CloseStatus(err))

	status, header, text = send(http.MethodPost, `{"documentId":"who"}`, "Origin", allowed)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, text, "RATE_LIMITED")
	require.NotEmpty(t, header.Get("Retry-After"))
	require.Equal(t, "Retry-After, Www-Authenticate", header.Get("Access-Control-Expose-Headers"))

	for err = nil; err == nil; {
		_, _, err = first.Read(t.Context())
	}
	require.EqualValues(t, 4410, websocket.CloseStatus(err))
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestIntrospectionIsOffWhereTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	for on, want := range map[bool]string{true: `"queryType"`, false: "INTROSPECTION_DISABLED"} {
		cfg := defaults(t)
		cfg.Introspection = on
		g := serve(t, cfg)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.addr+"/graphql", bytes.NewReader([]byte(`{"query":"{ __schema { queryType { name } } }"}`)))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		status, text := do(t, req)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, text, want)
	}
}

func TestRefusesToStartWithDocumentsThatNobodyCouldExecute(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	file := filepath.Join(t.TempDir(), "documents.json")
	cfg.TrustedDocuments.Manifest = file
	_, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte(`{"good": "{ viewer { subject } }", "bad": "query Old { viewer { name } }"}`), 0o600))
	_, err = Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, config.ErrInvalid)
	require.ErrorContains(t, err, "trusted document bad")
	require.NotContains(t, err.Error(), "good")

	cfg.Introspection = false
	require.NoError(t, os.WriteFile(file, []byte(`{"schema": "{ __schema { queryType { name } } }"}`), 0o600))
	_, err = Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "trusted document schema")
	require.ErrorContains(t, err, "does not tell its schema")
}

func TestRefusesTasksThatTakeMoreThanAnyInputMayHave(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	cfg.Limits.Input = 4096
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	require.NoError(t, p.store.Close())
	task := p.suites[0].Task
	task.MaxInputBytes = 4097
	err = checkTaskInputs(cfg.Limits.Input, p.catalog.All())
	require.ErrorIs(t, err, config.ErrInvalid)
	require.ErrorContains(t, err, "task "+task.Name+": max_input_bytes is 4097")
	task.MaxInputBytes = 4096
	require.NoError(t, checkTaskInputs(cfg.Limits.Input, p.catalog.All()))
}
