package attempts_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/attempts"
)

func TestList(t *testing.T) {
	t.Parallel()
	list := func(t *testing.T, b *testBundle, o attempts.ListOptions) (stdout, stderr string, err error) {
		t.Helper()
		var out, errs bytes.Buffer
		err = attempts.List(t.Context(), b.store.Client(), o, attempts.Streams{Out: &out, Err: &errs})
		return out.String(), errs.String(), err
	}

	t.Run("ShowsAStateOfAProviderOldestFirst", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			first, second, other := b.unknown(t, "paper/a", outage), b.unknown(t, "paper/b", outage), b.unknown(t, "ink/a", outage)

			out, errs, err := list(t, b, attempts.ListOptions{State: "UNKNOWN", Provider: "paper", Format: attempts.Table, Limit: 2})
			require.NoError(t, err)
			require.Empty(t, errs)
			require.Equal(t, `ATTEMPT                         JOB                             TARGET   STATE    SENT                  ERROR
`+first.ID+`  `+first.JobID+`  paper/a  UNKNOWN  2026-03-14T09:00:00Z  ACK_TIMEOUT
`+second.ID+`  `+second.JobID+`  paper/b  UNKNOWN  2026-03-14T09:00:00Z  ACK_TIMEOUT
`, out)

			out, errs, err = list(t, b, attempts.ListOptions{State: "UNKNOWN", Format: attempts.JSON, Limit: 2})
			require.NoError(t, err)
			require.Equal(t, "There are more than 2; --limit shows more of them.\n", errs)
			require.NotContains(t, out, other.ID)
			var doc struct {
				Format   int
				Attempts []map[string]any
			}
			require.NoError(t, json.Unmarshal([]byte(out), &doc))
			require.Equal(t, 1, doc.Format)
			require.Len(t, doc.Attempts, 2)
			require.Equal(t, first.ID, doc.Attempts[0]["id"])
			require.Equal(t, "2026-03-14T09:00:00Z", doc.Attempts[0]["sentAt"])
			require.Nil(t, doc.Attempts[0]["finishedAt"])

			out, _, err = list(t, b, attempts.ListOptions{State: "FAILED", Format: attempts.JSON, Limit: 1})
			require.NoError(t, err)
			require.JSONEq(t, `{"format":1,"attempts":[]}`, out)
		})
	})

	t.Run("RefusesWhatItDoesNotKnow", func(t *testing.T) {
		t.Parallel()
		b := setupSQLite(t)
		for _, o := range []attempts.ListOptions{
			{State: "unknown", Format: attempts.Table, Limit: 1}, {State: "UNKNOWN", Format: "xml", Limit: 1},
			{State: "UNKNOWN", Format: attempts.Table}, {State: "UNKNOWN", Format: attempts.Table, Limit: 1, Provider: "paper/a"},
		} {
			_, _, err := list(t, b, o)
			require.ErrorIs(t, err, attempts.ErrUsage)
		}
	})
}
