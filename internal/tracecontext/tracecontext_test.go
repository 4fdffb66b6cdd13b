package tracecontext_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tracecontext"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	given   = "00-" + traceID + "-00f067aa0ba902b7-01"
)

func TestFromHeader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values []string
		want   string
	}{
		"valid":               {[]string{given}, given},
		"not sampled":         {[]string{"00-" + traceID + "-00f067aa0ba902b7-00"}, "00-" + traceID + "-00f067aa0ba902b7-00"},
		"a later version":     {[]string{"01-" + traceID + "-00f067aa0ba902b7-01-more"}, given},
		"none":                {nil, ""},
		"empty":               {[]string{""}, ""},
		"two":                 {[]string{given, given}, ""},
		"no trace":            {[]string{"00-00000000000000000000000000000000-00f067aa0ba902b7-01"}, ""},
		"no span":             {[]string{"00-" + traceID + "-0000000000000000-01"}, ""},
		"capitals":            {[]string{strings.ToUpper(given)}, ""},
		"short":               {[]string{"00-" + traceID + "-00f067aa0ba902-01"}, ""},
		"more in version 00":  {[]string{given + "-more"}, ""},
		"version ff":          {[]string{"ff" + given[2:]}, ""},
		"no hexadecimal":      {[]string{strings.Replace(given, "4bf9", "xxxx", 1)}, ""},
		"something else":      {[]string{"hello\r\nX-Evil: 1"}, ""},
		"thousands of digits": {[]string{strings.Repeat("0", 10_000)}, ""},
	} {
		h := http.Header{}
		for _, v := range tc.values {
			h.Add("Traceparent", v)
		}
		require.Equal(t, tc.want, tracecontext.FromHeader(h), name)
	}
}

func TestAnAttemptIsASpanOfItsJobsTrace(t *testing.T) {
	t.Parallel()
	const jobID, a, b = "job_1", "att_1", "att_2"
	for _, parent := range []string{given, "", "nonsense"} {
		first, second := tracecontext.OfAttempt(jobID, parent, a), tracecontext.OfAttempt(jobID, parent, b)
		require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, first)
		require.Equal(t, first, tracecontext.OfAttempt(jobID, parent, a), "the same on any process")
		require.Equal(t, first[:36], second[:36], "one trace")
		require.NotEqual(t, first, second, "a span of its own")
		require.Equal(t, first[3:35], tracecontext.TraceID(jobID, parent))
		require.NotEqual(t, given, first)
		require.Equal(t, parent == given, first[3:35] == traceID)
	}
	require.NotEqual(t, tracecontext.TraceID("job_1", ""), tracecontext.TraceID("job_2", ""))
	require.Equal(t, "00", tracecontext.OfAttempt(jobID, given[:53]+"00", a)[53:], "the caller's flags")
}
