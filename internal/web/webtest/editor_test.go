package webtest

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// The page's editors, by the names that GraphiQL gives their texts.
const (
	operations = "operation.graphql"
	headers    = "request-headers.json"
)

// model is a JavaScript expression: the text of an editor, as Monaco holds it.
func model(editor string) string {
	return fmt.Sprintf(`globalThis.__MONACO?.editor.getModels().find((m) => m.uri.path.endsWith(%s))`, quote(editor))
}

// write puts text into an editor, as typing would.
func (p *Page) write(editor, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`!!%s`, model(editor)))
	p.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void %s.setValue(%s)`, model(editor), quote(text))))
}

// holds waits until an editor's text contains text.
func (p *Page) holds(editor, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`%s?.getValue().includes(%s)`, model(editor), quote(text)))
}

func (p *Page) read(editor string) string {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](model(editor)+".getValue()"))
	p.require(err)
	return text
}

// run picks an operation of several from the menu of the execute button, once the page has read them.
func (p *Page) run(operation string) {
	p.t.Helper()
	p.Until(`document.querySelector("button.graphiql-execute-button")?.ariaHasPopup === "menu"`)
	item := fmt.Sprintf(`//*[@role="menuitem"][normalize-space()="%s"]`, operation)
	p.Do(chromedp.Click(executeButton), chromedp.Click(item))
}

// press presses a button of an item of the history; some are only to be seen under the mouse.
func (p *Page) press(item, button string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`(() => {
		const items = [...document.querySelectorAll(".graphiql-history-item")].filter((i) => i.innerText.includes(%s));
		items[0]?.querySelector('button[aria-label="' + %s + '"]').click();
		return items.length > 0;
	})()`, quote(item), quote(button)))
}

// flat is Text on one line.
func (p *Page) flat(selector string) string {
	p.t.Helper()
	return strings.Join(strings.Fields(p.Text(selector)), " ")
}

// kept returns everything that the page can keep in the browser, as text.
func (p *Page) kept() string {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`(async () => JSON.stringify({
		local: {...localStorage}, session: {...sessionStorage}, cookie: document.cookie, address: location.href, state: history.state,
		window: window.name, databases: await indexedDB.databases(), caches: await caches.keys(),
	}))()`, chromedp.EvalAwaitPromise))
	p.require(err)
	require.Contains(p.t, text, `"databases":[],"caches":[]`, "these are not looked into")
	return text
}

// sockets returns the WebSockets that the page opened so far.
func (p *Page) sockets() (addresses []string) {
	for _, address := range p.Requests() {
		if strings.HasPrefix(address, "ws:") {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
