package npm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLockNamesNoRegistry(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, wantErr string }{
		{name: "TakesPackagesWithADigest", text: `{"packages": {"": {}, "node_modules/a": {"version": "1.0.0", "integrity": "sha512-x"}}}`},
		{name: "TakesFoldersOfItsOwn", text: `{"packages": {"node_modules/a": {"resolved": "left-out", "link": true}, "left-out": {"version": "0.0.0"}}}`},
		{name: "RefusesAnAddress", text: `{"packages": {"node_modules/a": {"version": "1.0.0", "integrity": "x", "resolved": "https://r.example/a.tgz"}}}`,
			wantErr: "names a registry"},
		{name: "RefusesAPackageWithoutADigest", text: `{"packages": {"node_modules/a": {"version": "1.0.0"}}}`, wantErr: "node_modules/a has no integrity"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			lock, err := ReadLock([]byte(row.text))
			require.NoError(t, err)
			if row.wantErr == "" {
				require.NoError(t, lock.NamesNoRegistry())
				return
			}
			require.ErrorContains(t, lock.NamesNoRegistry(), row.wantErr)
		})
	}
	_, err := ReadLock([]byte(`{}`))
	require.Error(t, err)
}
