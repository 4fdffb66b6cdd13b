package webtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const (
	executeButton = chromedp.CSS("button.graphiql-execute-button")
	response      = ".graphiql-response .view-lines"
)

var jobIDPattern = regexp.MustCompile(`"id": "(job_[^"]+)"`)

// RunsOperation opens the page at baseURL (http://127.0.0.1:port) and runs the page's own operation CreateJob by its buttons. It
// returns the id of the job that the page then shows, and fails the test if the page showed anything else, asked another
// host for anything or complained of anything.
func RunsOperation(t *testing.T, baseURL string) (jobID string) {
	t.Helper()
	p := Open(t, baseURL+"/")
	p.choose("CreateJob")
	p.Until(shown(`"__typename": "CreateJobSuccess"`))
	id := jobIDPattern.FindStringSubmatch(p.Text(response))
	require.NotNil(t, id, "the page shows no job: %s", p.Text(response))
	p.requireCalm()
	return id[1]
}

// RunsSubscription opens the page at baseURL and watches the attempts of a job of the operator "local", until the page shows want.
func RunsSubscription(t *testing.T, baseURL, jobID, want string) {
	t.Helper()
	p := Open(t, baseURL+"/")
	p.Do(chromedp.WaitVisible(executeButton))
	// The placeholder of the page's own operation takes the job's id, as a person would edit it.
	p.Until(fmt.Sprintf(`(() => {
		const model = globalThis.__MONACO?.editor.getModels().find((m) => m.getValue().includes("job_…"));
		if (!model) return false;
		model.setValue(model.getValue().replaceAll("job_…", %s));
		return true;
	})()`, quote(jobID)))
	p.choose("WatchAttempts")
	p.Until(shown(want))
	p.requireCalm()
}

// choose presses the execute button and picks an operation from its menu.
func (p *Page) choose(operation string) {
	p.t.Helper()
	p.Do(chromedp.WaitVisible(executeButton))
	// Until the editor has read its text there are no operations to choose from.
	p.Until(`document.querySelector(".graphiql-query-editor .view-lines")?.innerText.includes("Welcome")`)
	p.Do(
		chromedp.Click(executeButton),
		chromedp.Click(fmt.Sprintf(`//*[@role="menuitem"][normalize-space()="%s"]`, operation)),
	)
}

// requireCalm fails the test for every problem that the page had.
func (p *Page) requireCalm() {
	p.t.Helper()
	require.Empty(p.t, p.Problems())
	require.NotEmpty(p.t, p.Requests(), "nothing was observed, so nothing is proved")
}

// shown is a JavaScript expression: the response pane shows text, however its lines are broken.
func shown(text string) string {
	return fmt.Sprintf(`document.querySelector(%q)?.innerText.replaceAll(/\s+/g, " ").includes(%s)`, response, quote(text))
}

// quote writes text as a JavaScript string.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // text is always a string, and those marshal
	}
	return string(b)
}
