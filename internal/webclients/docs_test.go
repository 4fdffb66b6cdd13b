package webclients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/npm"
)

var (
	quoted  = regexp.MustCompile("(?s)<!-- (\\S+): (\\S+) -->\n```js\n(.*?)```\n")
	snippet = regexp.MustCompile(`(?ms)^( *)// snippet: (\S+)\n(.*?)^ *// end\n`)
)

// What the documentation shows is what runs here.
func TestDocumentationQuotesTheTestedPrograms(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients.md"))
	require.NoError(t, err)
	quotes := quoted.FindAllStringSubmatch(string(text), -1)
	require.Len(t, quotes, 8)
	for _, q := range quotes {
		program, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(q[1])))
		require.NoError(t, err)
		var found []string
		for _, s := range snippet.FindAllStringSubmatch(string(program), -1) {
			if s[2] == q[2] {
				found = append(found, regexp.MustCompile(`(?m)^`+s[1]).ReplaceAllString(s[3], ""))
			}
		}
		require.Equal(t, []string{q[3]}, found, "%s: %s", q[1], q[2])
	}

	raw, err := manifest.ReadFile("node/package-lock.json")
	require.NoError(t, err)
	lock, err := npm.ReadLock(raw)
	require.NoError(t, err)
	for _, name := range []string{"graphql-ws", "graphql-sse", "@apollo/client", "@urql/core", "relay-runtime"} {
		require.Contains(t, string(text), "| "+lock.Packages["node_modules/"+name].Version+" |", name)
	}
	require.Contains(t, string(text), "graphql-http) "+lock.Packages["node_modules/graphql-http"].Version)
	require.Equal(t, lock.Packages["node_modules/relay-runtime"].Version, lock.Packages["node_modules/relay-compiler"].Version)
}

func TestReadmeNamesEveryOptionOfTheClient(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "clients", "typescript", "README.md"))
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join("..", "..", "clients", "typescript", "src", "client.ts"))
	require.NoError(t, err)
	_, options, _ := strings.Cut(string(source), "export interface ClientOptions {")
	options, _, _ = strings.Cut(options, "\n}\n")
	names := regexp.MustCompile(`(?m)^  (\w+)\??:`).FindAllStringSubmatch(options, -1)
	require.Greater(t, len(names), 5)
	for _, n := range names {
		require.Contains(t, string(readme), "`"+n[1]+"`")
	}
}
