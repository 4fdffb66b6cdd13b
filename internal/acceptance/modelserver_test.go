package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/app"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/modelserver"
	"github.com/docket-gateway/docket/providers/providertest"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

// noise is a target at a real model server, whose model answers in any form that is asked for and means nothing by it.
const noise = "local/noise"

// withNoise adds the model server to the settings, beside the fake provider.
func withNoise(s settings, server *modelserver.Server) settings {
	s.more = fmt.Sprintf(`
  - name: local
    kind: openai-compatible
    base_url: %s/v1
    ack_timeout: 5m
    idle_timeout: 5m
    total_timeout: 10m
    linger: 5s
    models: [{name: noise, context_window: 16384, max_output_tokens: 16000, tokenizer: llamacpp}]
`, server.URL)
	return s
}

// triageFolder has the shipped task triage, word for word but for its route.
func triageFolder(t *testing.T) string {
	t.Helper()
	shipped, err := fs.Sub(contracts.ShippedTasks(), "triage")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "triage"), shipped))
	path := filepath.Join(dir, "triage", "task.yaml")
	definition, err := os.ReadFile(path)
	require.NoError(t, err)
	routed := strings.NewReplacer("target: demo/inkjet", "target: fake/primary", "[demo/laser]", "["+noise+"]").Replace(string(definition))
	require.Contains(t, routed, noise)
	require.NoError(t, os.WriteFile(path, []byte(routed), 0o600))
	return dir
}

var triageMessage = variables{"subject": "Invoice 77", "text": "I was charged twice — please refund me. </s>"}

// ends is becomes for whichever of the states comes, with more patience: a real model computes.
func (c *client) ends(t *testing.T, id string, states ...string) (j job) {
	t.Helper()
	await.Within(t, 2*await.Patience, fmt.Sprintf("job %s becomes one of %s", id, states), func() bool {
		j = c.job(t, id)
		return slices.Contains(states, j.State)
	}, func() string { return j.states() })
	return j
}

func TestRealModelAnswersTheShippedTask(t *testing.T) {
	t.Parallel()
	server := modelserver.Start(t, modelserver.Options{Context: 16384})
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := triageFolder(t)
			g, _ := newGateway(t, withNoise(settings{database: fresh(t), tasks: folder}, server))
			j := g.create(t, variables{"idempotencyKey": "k", "task": "triage", "input": triageMessage, "target": noise, "fallbacks": []string{}})
			j = g.ends(t, j.ID, "SUCCEEDED", "FAILED")
			require.Equal(t, "SUCCEEDED", j.State, "%+v", j.last().Error)
			steps := changes(g.events(t, j.ID), j.last().ID)
			require.Equal(t, []string{"RUNNING", "SUCCEEDED"}, steps[len(steps)-2:], "it was acknowledged before it answered")

			var result struct{ Category, Priority, Summary string }
			require.NoError(t, json.Unmarshal(j.Result, &result))
			require.Contains(t, []string{"billing", "technical", "account", "shipping", "other"}, result.Category)
			require.Contains(t, []string{"low", "normal", "high", "urgent"}, result.Priority)
			require.NotEmpty(t, result.Summary)

			won := j.last()
			require.Regexp(t, "^chatcmpl-", won.ProviderRequestID)
			require.NotNil(t, won.Usage)
			require.Equal(t, weighed(t, server, folder), *won.Usage.InputTokens, "the prompt as the model's tokenizer has it")
			served := completionOf(t, server, won.ID)
			require.Equal(t, "stop", served.Finish)
			require.Equal(t, served.PromptTokens, *won.Usage.InputTokens)
			require.Equal(t, served.CompletionTokens, *won.Usage.OutputTokens)
			require.Greater(t, served.Texts, 20, "it came as a stream")
		})
	}
}

// weighed counts the prompt of triageMessage by the server's /apply-template and /tokenize.
func weighed(t *testing.T, server *modelserver.Server, folder string) int {
	t.Helper()
	suites, err := contracts.LoadSuites(os.DirFS(folder))
	require.NoError(t, err)
	input, err := json.Marshal(triageMessage)
	require.NoError(t, err)
	prompt, err := suites[0].Task.Render(input)
	require.NoError(t, err)
	c, err := tokenizer.New("llamacpp", tokenizer.Options{BaseURL: server.URL + "/v1", Model: "noise", Timeout: await.Patience})
	require.NoError(t, err)
	n, err := c.Count(t.Context(), tokenizer.Prompt{System: prompt.System, User: prompt.User})
	require.NoError(t, err)
	return n
}

// completionOf is the one that the server made for the attempt, and the only one.
func completionOf(t *testing.T, server *modelserver.Server, attemptID string) (found modelserver.Completion) {
	t.Helper()
	await.Until(t, "the end of the completion", func() bool {
		n := 0
		over, err := server.Completions()
		require.NoError(t, err)
		for _, c := range over {
			if c.Request == attemptID {
				found, n = c, n+1
			}
		}
		require.LessOrEqual(t, n, 1, "it was sent twice")
		return n == 1
	})
	return found
}

// streams waits until the model is in the middle of the attempt's answer.
func streams(t *testing.T, g *gateway, server *modelserver.Server, jobID string) attempt {
	t.Helper()
	a := g.attemptBecomes(t, jobID, 1, "RUNNING")
	await.Until(t, "an answer in mid-stream", func() bool {
		texts, err := server.Running(t.Context())
		require.NoError(t, err)
		return len(texts) == 1 && texts[0] > 20
	})
	return a
}

// endless is a job of echo at the model: nothing bounds its text but the context.
func endless(key string) variables {
	return variables{"idempotencyKey": key, "task": "echo", "input": variables{"text": "hello"}, "target": noise, "fallbacks": []string{}}
}

func TestRealModelIsToldToStop(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := modelserver.Start(t, modelserver.Options{Context: 65536, Parallel: 1})
			g, f := newGateway(t, withNoise(settings{database: fresh(t)}, server))
			stopped := func(t *testing.T, a attempt) {
				t.Helper()
				c := completionOf(t, server, a.ID)
				require.Equal(t, "abandoned", c.Finish)
				require.Greater(t, c.Texts, 20)
				texts, err := server.Running(t.Context())
				require.NoError(t, err)
				require.Empty(t, texts)
			}
			t.Run("WhenItsOwnerCancels", func(t *testing.T) {
				j := g.create(t, endless("cancelled"))
				a := streams(t, g, server, j.ID)
				require.Equal(t, typeJobCancelled, g.cancelJob(t, j.ID).Typename)
				stopped(t, a)
				require.Equal(t, "CANCELLED", g.job(t, j.ID).Attempts[0].State)
			})
			t.Run("WhenItLosesTheRace", func(t *testing.T) {
				prove(t, g.config, "echo", second)
				f.OnModel("second", providertest.Says(`{"text": "winner"}`, "stop"))
				j := g.create(t, endless("raced"))
				a := streams(t, g, server, j.ID)
				require.Equal(t, typeStarted, g.start(t, j.ID, second).Typename)
				won := g.becomes(t, j.ID, "SUCCEEDED")
				require.JSONEq(t, `{"text": "winner"}`, string(won.Result))
				require.Equal(t, "SUPERSEDED", won.Attempts[0].State)
				stopped(t, a)
			})
		})
	}
}

// A grammar keeps the form of an answer, but not every rule: that a summary begins with a capital letter is up to the model,
// which here knows nothing of it. The contract refuses the model for that, and so it never stands in for another.
func TestContractRefusesAModelThatTalksNonsense(t *testing.T) {
	t.Parallel()
	server := modelserver.Start(t, modelserver.Options{Context: 16384})
	folder := triageFolder(t)
	cases, err := filepath.Glob(filepath.Join(folder, "triage", "cases", "*"))
	require.NoError(t, err)
	for _, file := range cases { // two are enough, and each takes the model some seconds
		if name := filepath.Base(file); !strings.HasPrefix(name, "outage.") && !strings.HasPrefix(name, "thanks.") {
			require.NoError(t, os.Remove(file))
		}
	}
	path := filepath.Join(folder, "triage", "output.schema.json")
	shipped, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(shipped), `"maxLength": 200`)
	strict := strings.Replace(string(shipped), `"maxLength": 200`, `"maxLength": 200, "pattern": "^[A-Z]"`, 1)
	require.NoError(t, os.WriteFile(path, []byte(strict), 0o600))
	g, f := newGateway(t, withNoise(settings{database: sqlite(t), tasks: folder}, server))
	f.OnModel("primary", providertest.Error(http.StatusBadRequest, "no_paper"))

	var out, errs bytes.Buffer
	code := app.Main([]string{"contracts", "run", "--config", g.config, "--task", "triage", "--target", noise, "--runs", "1", "--format", "json"}, nil, &out, &errs)
	require.Equal(t, 1, code, "%s%s", &out, &errs)
	var told struct {
		Passed  bool
		Results []report.Result
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &told))
	require.False(t, told.Passed)
	require.Len(t, told.Results, 1)
	require.Equal(t, noise, told.Results[0].Target)
	require.Len(t, told.Results[0].Cases, 2)
	for _, c := range told.Results[0].Cases {
		require.Len(t, c.Runs, 1)
		require.NotNil(t, c.Runs[0].OutputTokens, "the model answered")
		check := c.Runs[0].Checks[0]
		require.Equal(t, report.CheckSchema, check.Name)
		require.Equal(t, report.Failed, check.Status)
		require.Equal(t, contracts.CodeOutputInvalid, check.Code)
		require.Len(t, check.Problems, 1, "the grammar held for all else")
		require.Equal(t, "/summary", check.Problems[0].Pointer)
		require.Contains(t, check.Problems[0].Expected, "(pattern)")
	}

	j := g.create(t, variables{"idempotencyKey": "k", "task": "triage", "input": triageMessage})
	j = g.becomes(t, j.ID, "FAILED")
	require.Len(t, j.Attempts, 1, "the fallback was not taken")
	var skipped []event
	for _, e := range g.events(t, j.ID) {
		if e.Type == typeSkipped {
			skipped = append(skipped, e)
		}
	}
	require.Len(t, skipped, 1)
	require.Equal(t, noise, skipped[0].Detail.Target)
	require.Contains(t, strings.Join(skipped[0].Detail.Reasons, "\n"), "failed")
	require.Equal(t, typeNotAllowed, g.start(t, j.ID, noise).Typename)
	served, err := server.Completions()
	require.NoError(t, err)
	for _, c := range served {
		require.NotContains(t, c.Request, "att_", "nothing but the contract was sent")
	}
}
