package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNegotiatePicksWhatTheClientLikesBest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		accept []string
		want   string // "" is nothing
	}{
		{nil, jsonType},
		{[]string{"*/*"}, jsonType},
		{[]string{"application/*"}, jsonType},
		{[]string{"text/event-stream"}, streamType},
		{[]string{"text/*"}, ""}, // a stream is for who names it
		{[]string{"text/html"}, ""},
		{[]string{""}, jsonType}, // as if there were none
		{[]string{" ", ","}, jsonType},
		{[]string{"nonsense"}, ""},
		{[]string{"application/json;q=0, */*"}, responseType},
		{[]string{"*/*, application/json;q=0"}, responseType},
		{[]string{"application/json;q=0, application/graphql-response+json;q=0, */*"}, ""},
		{[]string{"application/*;q=0, */*"}, ""},
		{[]string{"application/json;q=0.5, */*"}, responseType},
		{[]string{"application/*;q=0.5, */*, text/event-stream;q=0.8"}, streamType},
		{[]string{"*/*, application/graphql-response+json"}, jsonType},
		{[]string{"application/graphql-response+json, */*"}, responseType},
		{[]string{"text/event-stream, */*;q=0.1"}, streamType},
		{[]string{"text/event-stream;q=0, */*"}, jsonType},
		{[]string{"application/json;q=NaN"}, ""},
		{[]string{"application/json;q=0"}, ""},
		{[]string{"application/json;q=2"}, ""},
		{[]string{"application/json;charset=latin1"}, ""},
		{[]string{"application/json;charset=UTF-8"}, jsonType},
		{[]string{"application/graphql-response+json, application/json"}, responseType},
		{[]string{"application/json, application/graphql-response+json"}, jsonType},
		{[]string{"application/json;q=0.3", "text/event-stream;q=0.4"}, streamType},
		{[]string{"nonsense/;;, APPLICATION/JSON"}, jsonType},
	} {
		got, ok := negotiate(c.accept)
		require.Equal(t, c.want != "", ok, c.accept)
		if ok {
			require.Equal(t, c.want, got, c.accept)
		}
	}
}
