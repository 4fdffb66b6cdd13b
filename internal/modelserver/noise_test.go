package modelserver

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// The same everywhere and always: tests on two machines talk of the same model.
func TestNoiseModelIsTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(NoiseModel(1))
	require.Equal(t, "3aebaa729a9f3af2b4532227f516be3672d42df98db9597c94a1d1b4b7ef63c1", hex.EncodeToString(sum[:]))
	require.NotEqual(t, NoiseModel(1), NoiseModel(2))
	require.Less(t, len(NoiseModel(1)), 512<<10, "small enough to be written by each test")
}
