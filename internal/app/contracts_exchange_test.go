package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/viewer"
)

// docket runs a command with the site's configuration.
func (s *site) docket(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append(args, "--config", filepath.Join(s.dir, "docket.yaml")), s.env, &o, &e)
	return code, o.String(), e.String()
}

func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

// TestResultsGoFromOneMachineToAnother: from CI, which ran the contract two hours ago, to production.
func TestResultsGoFromOneMachineToAnother(t *testing.T) {
	t.Parallel()
	ci, production := newSite(t, filepath.Join(t.TempDir(), "ci.db")), newSite(t, filepath.Join(t.TempDir(), "production.db"))
	at := []string{"contracts", "export", "--task", "triage", "--target", "acme/small", "--key", ci.file("ci.key"), "--output", ci.file("results.json")}

	code, _, errs := ci.docket(t, "contracts", "keygen")
	require.Equal(t, exitUnusable, code)
	require.Contains(t, errs, "--output")
	code, out, _ := ci.docket(t, "contracts", "keygen", "--output", ci.file("ci.key"))
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "SHA256:")
	code, _, _ = ci.docket(t, "contracts", "keygen", "--output", ci.file("ci.key"))
	require.Equal(t, exitUnusable, code, "a key is not overwritten")
	p := ci.load(t, time.Now)
	code, _, errs = ci.docket(t, at...)
	require.Equal(t, exitUnusable, code, "there is nothing to export")
	require.Contains(t, errs, "there is no result")

	then := time.Now().Add(-2 * time.Hour)
	require.NoError(t, gate.NewRecorder(p.store.Client(), func() time.Time { return then }).
		Record(t.Context(), p.passing(t, "triage", "acme/small", then)))
	code, _, errs = ci.docket(t, at...)
	require.Equal(t, exitOK, code, errs)
	code, _, errs = ci.docket(t, "contracts", "export", "--key", ci.file("ci.key"), "--output", ci.file("route.json"))
	require.Equal(t, exitFailed, code, "the primary was never run")
	require.Contains(t, errs, "triage at demo/inkjet: there is no result")

	// Nobody is trusted, then somebody else, then the right one.
	in := []string{"contracts", "import", ci.file("results.json")}
	code, _, errs = production.docket(t, in...)
	require.Equal(t, exitUnusable, code)
	require.Contains(t, errs, "no key is trusted")
	code, _, _ = production.docket(t, "contracts", "keygen", "--output", production.file("other.key"))
	require.Equal(t, exitOK, code)
	code, _, errs = production.docket(t, append(in, "--trust", production.file("other.key.pub"))...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "the results are refused: no signature is that of a trusted key")
	require.Empty(t, production.results(t), "nothing is stored of what is refused")
	code, _, errs = production.docket(t, append(in, "--trust", ci.file("ci.key"))...)
	require.Equal(t, exitUnusable, code, "a private key is not to trust")
	require.NotContains(t, errs, "BEGIN")

	production.edit(t, "docket.yaml", "database:", "contracts: {trusted_keys: ["+production.file("other.key.pub")+", "+ci.file("ci.key.pub")+"]}\ndatabase:")
	code, out, errs = production.docket(t, in...)
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `^triage at acme/small: imported; PASSED in mode live by tester 2 hours ago, signed by SHA256:\S+; the gate is open\n$`, out)
	code, out, _ = production.docket(t, in...)
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "stored before")
	list := production.results(t)
	require.Len(t, list, 1)
	require.True(t, strings.HasPrefix(*list[0].SignedBy, "SHA256:"))
	require.Equal(t, whoami(), *list[0].ImportedBy)
	require.WithinDuration(t, then, list[0].CreatedAt, time.Millisecond)
	require.WithinDuration(t, time.Now(), *list[0].ImportedAt, time.Minute)

	status := []string{"contracts", "status", "--target", "acme/small", "--format", "json"}
	code, out, errs = production.docket(t, status...)
	require.Equal(t, exitOK, code, errs)
	var doc struct {
		Status []struct {
			State, Mode string
			RanBy       string    `json:"ran_by"`
			SignedBy    string    `json:"signed_by"`
			Age         int       `json:"age_seconds"`
			ExpiresAt   time.Time `json:"expires_at"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.Equal(t, "PASSED live tester", doc.Status[0].State+" "+doc.Status[0].Mode+" "+doc.Status[0].RanBy)
	require.Equal(t, *list[0].SignedBy, doc.Status[0].SignedBy)
	require.InDelta(t, 7200, doc.Status[0].Age, 60)
	require.WithinDuration(t, then.Add(24*time.Hour), doc.Status[0].ExpiresAt, time.Second)

	// The change of the gate can be read later.
	code, out, _ = production.docket(t, "contracts", "log")
	require.Equal(t, exitOK, code)
	require.Regexp(t, `(?m)^\S+Z +triage +acme/small +MISSING +PASSED +-$`, out)
	code, out, _ = production.docket(t, "contracts", "log", "--task", "triage", "--target", "acme/small", "--format", "json")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, `"result_id": "`+list[0].ID+`"`)
	code, out, _ = production.docket(t, "contracts", "log", "--target", "other/one", "--format", "json")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, `"events": []`)
	code, _, _ = production.docket(t, "contracts", "log", "--format", "junit")
	require.Equal(t, exitUnusable, code)
}

func (s *site) results(t *testing.T) []*ent.ContractResult {
	t.Helper()
	list, err := s.load(t, time.Now).store.Client().ContractResult.Query().All(viewer.NewSystemContext(t.Context()))
	require.NoError(t, err)
	return list
}

func TestImportSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := newSite(t, filepath.Join(t.TempDir(), "docket.db"))
	code, _, _ := s.docket(t, "contracts", "keygen", "--output", s.file("k"))
	require.Equal(t, exitOK, code)
	trust := []string{"--trust", s.file("k.pub")}
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"NoFile":     {nil, exitUnusable, "accepts 1 arg"},
		"NotThere":   {[]string{s.file("none")}, exitUnusable, "no such file"},
		"NotResults": {[]string{s.file("docket.yaml")}, exitFailed, "the results are refused"},
	} {
		code, out, errs := s.docket(t, append(append([]string{"contracts", "import"}, tc.args...), trust...)...)
		require.Equal(t, tc.code, code, name)
		require.Contains(t, errs, tc.says)
		require.Empty(t, out)
	}
	huge, err := os.Create(s.file("huge"))
	require.NoError(t, err)
	require.NoError(t, huge.Truncate(17<<20))
	require.NoError(t, huge.Close())
	code, _, errs := s.docket(t, append([]string{"contracts", "import", s.file("huge")}, trust...)...)
	require.Equal(t, exitUnusable, code)
	require.Contains(t, errs, "larger than")
}

// TestImportOfAnotherConfigurationOpensNothing: what CI ran against is not what production uses.
func TestImportOfAnotherConfigurationOpensNothing(t *testing.T) {
	t.Parallel()
	ci, production := newSite(t, filepath.Join(t.TempDir(), "ci.db")), newSite(t, filepath.Join(t.TempDir(), "production.db"))
	production.edit(t, "docket.yaml", "acme.example", "emca.example")
	p := ci.load(t, time.Now)
	require.NoError(t, p.recorder(time.Now).Record(t.Context(), p.passing(t, "triage", "acme/small", time.Now())))
	_, _, _ = ci.docket(t, "contracts", "keygen", "--output", ci.file("k"))
	code, out, errs := ci.docket(t, "contracts", "export", "--target", "acme/small", "--key", ci.file("k"))
	require.Equal(t, exitOK, code, errs)
	file := write(t, production.dir, "results.json", out)
	code, out, errs = production.docket(t, "contracts", "import", file, "--trust", ci.file("k.pub"))
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `the gate is closed \(STALE\): The base URL of the provider changed since the result of .* ago\.`, out)
}

// TestRecordingLooksAtTheGate: the event is there as soon as the result is, for versions that only open jobs hold too.
func TestRecordingLooksAtTheGate(t *testing.T) {
	t.Parallel()
	s := newSite(t, filepath.Join(t.TempDir(), "docket.db"))
	p := s.load(t, time.Now)
	old := p.suite(t, "triage").Task
	require.NoError(t, p.store.Client().TaskVersion.Create().SetID(old.Digest).SetName(old.Name).SetVersion(old.Version).SetContent(old.Content).
		Exec(viewer.NewSystemContext(t.Context())))
	res := p.passing(t, "triage", "acme/small", time.Now())
	s.edit(t, "tasks/triage/task.yaml", `version: "1"`, `version: "2"`)
	next := s.load(t, time.Now)
	require.NoError(t, next.recorder(time.Now).Record(t.Context(), res))
	failed := res
	failed.Cases = []report.Case{}
	require.NoError(t, next.recorder(time.Now).Record(t.Context(), failed))
	events, err := gate.Events(t.Context(), p.store.Client(), "", "", 10)
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, old.Digest, events[0].TaskVersion)
	require.Equal(t, []gate.State{gate.Missing, gate.Passed, gate.Failed}, []gate.State{events[0].From, events[0].To, events[1].To})

	now, err := p.gates(t.Context())
	require.NoError(t, err)
	require.Len(t, now.Open, 2)
	require.Equal(t, "acme/small", now.Open[1].Target)
	require.False(t, now.Open[1].Open)
	require.Len(t, now.Changes, 2)
}

// TestRecordingSeesTheGoldensThatWereWrittenMeanwhile, as by --update: the gate is no moment closed for what was just added.
func TestRecordingSeesTheGoldensThatWereWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSite(t, filepath.Join(t.TempDir(), "docket.db"))
	p := s.load(t, time.Now)
	s.write(t, "tasks/triage/cases/double-charge.golden.json", `{"structure": [{"pointer": "", "type": "object"}]}`)
	res := s.load(t, time.Now).passing(t, "triage", "acme/small", time.Now())
	require.NoError(t, p.recorder(time.Now).Record(t.Context(), res))
	events, err := gate.Events(t.Context(), p.store.Client(), "", "", 10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, []gate.State{gate.Missing, gate.Passed}, []gate.State{events[0].From, events[0].To}, events[0].Reasons)
}
