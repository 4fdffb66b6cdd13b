package chromium

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	t.Parallel()
	having := func(programs ...string) func(string) (string, error) {
		return func(program string) (string, error) {
			if slices.Contains(programs, program) {
				return "/bin/" + program, nil
			}
			return "", os.ErrNotExist
		}
	}
	for _, row := range []struct {
		name, chosen string
		programs     []string
		want         string
		wantErr      error
	}{
		{name: "TakesWhatIsInPath", programs: []string{"google-chrome"}, want: "/bin/google-chrome"},
		{name: "PrefersTheChosenOne", chosen: "mine", programs: []string{"chromium", "mine"}, want: "/bin/mine"},
		{name: "DoesNotReplaceAChosenOneThatIsAbsent", chosen: "mine", programs: []string{"chromium"}, wantErr: os.ErrNotExist},
		{name: "SaysWhatToInstall", wantErr: ErrNotInstalled},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := find(row.chosen, having(row.programs...))
			require.ErrorIs(t, err, row.wantErr)
			require.Equal(t, row.want, got)
		})
	}
}
