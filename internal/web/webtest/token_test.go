package webtest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// olderPage is what an older version of the page, with its setting "Persist headers" on, left in a browser.
const olderPage = `(() => {
	const headers = JSON.stringify({Authorization: "Bearer CANARY"});
	const query = '# Without credentials you are the operator "local". To be\n# somebody else, write under Headers below:\n' +
		'# {"Authorization": "Bearer dev:alice"}\n\nquery Older { viewer { subject } }';
	const item = {query, headers, operationName: "Older"};
	const tab = {id: "1", hash: query + "||" + headers, title: "Older", query, variables: null, headers, operationName: "Older", response: null};
	const keep = (name, value) => localStorage.setItem("graphiql:" + name, typeof value === "string" ? value : JSON.stringify(value));
	keep("queries", {queries: [item]});
	keep("favorites", {favorites: [{...item, label: "a favourite", favorite: true}]});
	keep("tabState", {tabs: [tab], activeTabIndex: 0});
	keep("query", query);
	keep("headers", headers);
	keep("shouldPersistHeaders", "true");
	keep("whateverComes", headers);
})()`

const (
	notice     = ".docket-notice"
	stopButton = `document.querySelector("button.graphiql-execute-button").getAttribute("aria-label").startsWith("Stop")`
)

// says is a JavaScript expression: the page itself says text.
func says(text string) string {
	return fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%s)`, notice, quote(text))
}

func TestPageInTokenMode(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	job := g.openJob(t)
	credentials := fmt.Sprintf(`{"Authorization": "Bearer %s"}`, g.key)
	p := Open(t, g.url+"/assets/favicon.svg") // of its origin, and without its scripts
	p.Do(chromedp.Evaluate[chromedp.Void](olderPage))
	require.Contains(t, p.kept(), "CANARY")
	calm := func(t *testing.T) {
		t.Helper()
		require.NotContains(t, p.kept(), "CANARY")
		require.NotContains(t, p.kept(), g.key)
		require.NotContains(t, p.Text("body"), "stack")
	}

	// What an older page stored is gone, and the welcome is true.
	p.Do(chromedp.Navigate(g.url + "/"))
	p.Until(says("This gateway asks who you are"))
	calm(t)
	p.holds(operations, "asks who you are. Write under Headers")
	require.NotContains(t, p.read(operations), `operator "local"`)
	require.Empty(t, p.read(headers))

	p.Do(chromedp.Click(`button[aria-label="Open settings dialog"]`), chromedp.WaitVisible(`.graphiql-dialog`))
	require.NotContains(t, p.Text(".graphiql-dialog"), "headers", "nothing offers to keep them")
	p.Do(chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent(`.graphiql-dialog`))

	// Credentials go with a query and a subscription, and nowhere else.
	p.write(headers, credentials)
	p.write(operations, fmt.Sprintf(`query Who { viewer { subject } } subscription Watch { jobEvents(jobId: %q) { number type } }`, job))
	p.run("Who")
	p.Until(shown(`"subject": "alice"`))
	require.Empty(t, p.flat(notice))
	p.run("Watch")
	p.Until(shown(`"number":`))
	p.Until(stopButton)
	p.Do(chromedp.Click(`button[aria-label="Show History"]`))
	p.press("Who", "Add favorite")
	p.Until(`localStorage.getItem("graphiql:favorites")?.includes("Watch") && localStorage.getItem("graphiql:tabState")?.includes("Watch")`)
	calm(t)

	// Nor are they there after a reload; the history is, and leaves the Headers tab alone.
	p.Do(chromedp.Reload())
	p.Until(says("This gateway asks who you are"))
	p.holds(operations, "subscription Watch")
	require.Empty(t, p.read(headers))
	calm(t)
	p.write(headers, credentials)
	p.write(operations, "query Other { viewer { subject } }")
	p.press("Who", "Set active")
	p.holds(operations, "subscription Watch")
	require.Equal(t, credentials, p.read(headers))

	// Their end is said at once, and it is the end.
	p.run("Watch")
	p.Until(shown(`"number":`))
	sockets := len(p.sockets())
	g.revoke(t)
	p.Until(shown(`The credentials have expired or were revoked (4403 Forbidden).`))
	p.Until(says("The credentials have expired or were revoked"))
	p.Until("!(" + stopButton + ")")
	require.Contains(t, p.flat(response), "go on with after: ")
	require.Len(t, p.sockets(), sockets, "the page tried again with what was refused")
	p.run("Who")
	p.Until(says("The credentials under Headers are refused (unauthenticated: "))
	p.run("Watch")
	p.Until(shown("The credentials under Headers are refused (4403 Forbidden)"))
	calm(t)
}
