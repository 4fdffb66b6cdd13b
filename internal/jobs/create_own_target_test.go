package jobs

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tasks"
)

// onlyTarget is a server that has one target.
type onlyTarget string

func (o onlyTarget) Known(target string) bool { return target == string(o) }

// TestRefusesATaskWhoseOwnTargetIsNotHere: the route may name what only other servers have.
func TestRefusesATaskWhoseOwnTargetIsNotHere(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{}
	for file, text := range map[string]string{
		tasks.FileTask:        "name: here\nversion: v1\ntarget: other/a\nfallbacks: [demo/a]\n",
		tasks.FileInputSchema: `{"type":"object"}`, tasks.FileOutputSchema: `{"type":"object"}`,
		tasks.FileSystem: "Answer.\n", tasks.FilePrompt: "{{json .Input}}\n",
	} {
		fsys["here/"+file] = &fstest.MapFile{Data: []byte(text)}
	}
	d, err := tasks.Load(fsys, "here")
	require.NoError(t, err)
	catalog, err := tasks.NewCatalog(d)
	require.NoError(t, err)
	s := New(Deps{Catalog: catalog, Targets: onlyTarget("demo/a")}, Options{})

	in := CreateInput{Task: "here", Input: []byte(`{}`)}
	_, err = s.plan(in)
	var bad *InvalidInputError
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Issues, 1)
	require.Equal(t, "/target", bad.Issues[0].Path)

	in.Target = new("demo/a")
	p, err := s.plan(in)
	require.NoError(t, err)
	require.Equal(t, "demo/a", p.target)
	require.Empty(t, p.fallbacks, "the target is not its own fallback")
}
