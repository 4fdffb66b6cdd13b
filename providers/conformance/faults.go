package conformance

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/sse"
)

// Faults checks that what an adapter has injected in contract runs is what its SDK's types are. event and body return a line for
// each thing in an event of a stream, or in an error's body, that those do not have.
func Faults(t *testing.T, f providers.WireFaults, event, body func(data []byte) ([]string, error)) {
	t.Helper()
	for name, a := range map[string]providers.WireAnswer{
		"Refusal": f.Refusal, "Truncation": f.Truncation, "Filter": f.Filter, "Damaged": f.Damaged, "Begun": f.Begun,
	} {
		require.Equal(t, http.StatusOK, a.Status, name)
		events, r := 0, sse.NewReader(strings.NewReader(a.Body), 1<<20)
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			if string(e.Data) == "[DONE]" || name == "Damaged" && !json.Valid(e.Data) {
				continue
			}
			events++
			found, err := event(e.Data)
			require.NoError(t, err, name)
			require.Empty(t, found, "%s: %s", name, e.Data)
		}
		require.NotZero(t, events, name)
	}
	for _, a := range []providers.WireAnswer{f.RateLimit, f.Overload} {
		found, err := body([]byte(a.Body))
		require.NoError(t, err)
		require.Empty(t, found, a.Body)
	}
}
