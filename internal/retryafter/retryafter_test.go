package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/retryafter"
)

func TestParse(t *testing.T) {
	t.Parallel()
	now := time.Date(1994, 11, 6, 8, 49, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"none":                   {nil, 0},
		"empty":                  {map[string]string{"Retry-After": ""}, 0},
		"seconds":                {map[string]string{"Retry-After": " 7 "}, 7 * time.Second},
		"fraction":               {map[string]string{"Retry-After": "0.25"}, 250 * time.Millisecond},
		"negative":               {map[string]string{"Retry-After": "-7"}, 0},
		"for ever":               {map[string]string{"Retry-After": "1e300"}, retryafter.Max},
		"infinity":               {map[string]string{"Retry-After": "+Inf"}, retryafter.Max},
		"no number":              {map[string]string{"Retry-After": "NaN"}, 0},
		"words":                  {map[string]string{"Retry-After": "soon"}, 0},
		"date":                   {map[string]string{"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, 37 * time.Second},
		"date by RFC 850":        {map[string]string{"Retry-After": "Sunday, 06-Nov-94 08:49:37 GMT"}, 37 * time.Second},
		"date that is over":      {map[string]string{"Retry-After": "Sun, 06 Nov 1994 08:48:37 GMT"}, 0},
		"date by the answer's":   {map[string]string{"Retry-After": "Sun, 06 Nov 1994 09:00:30 GMT", "Date": "Sun, 06 Nov 1994 09:00:00 GMT"}, 30 * time.Second},
		"milliseconds go before": {map[string]string{"Retry-After-Ms": "1500", "Retry-After": "2"}, 1500 * time.Millisecond},
	} {
		h := http.Header{}
		for k, v := range tc.header {
			h.Set(k, v)
		}
		require.Equal(t, tc.want, retryafter.Parse(h, now), name)
	}
}
