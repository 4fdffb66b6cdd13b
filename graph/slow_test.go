package graph_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/viewer"
)

func impatient(o *graph.Options) { o.Transport.WriteTimeout = 200 * time.Millisecond }

// A client that stops reading holds neither a goroutine nor what it has not read.
func TestAClientThatDoesNotReadIsLeft(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"SSE", "WebSocket"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			b := setup(t, impatient)
			j := b.Job(t, alice, "k")
			const n = 40 // of 256 KiB each: more than the sockets' buffers take
			detail := json.RawMessage(`"` + string(bytes.Repeat([]byte("x"), 256<<10)) + `"`)
			sys := viewer.NewSystemContext(t.Context())
			var all []*ent.JobEventCreate
			for i := range n {
				all = append(all, b.Store.Client().JobEvent.Create().SetJobID(j.ID).SetNumber(2+i).SetType("NOTE").SetDetail(detail))
			}
			b.Store.Client().JobEvent.CreateBulk(all...).ExecX(sys)
			b.Store.Client().Job.Update().Where(job.ID(j.ID)).SetLastEvent(1 + n).ExecX(sys)
			variables := `{"id":"` + j.ID + `"}`
			if transport == "SSE" {
				b.stream(t, asAlice, watchEvents, variables)
			} else {
				b.open(t, asAlice).subscribe("1", watchEvents, variables)
			}
			await.Until(t, "it is watched", func() bool { return b.hub.Watched() == 1 })
			await.Until(t, "nobody watches", func() bool { return b.hub.Watched() == 0 })
		})
	}
}

func TestAConnectionOutlivesItsStream(t *testing.T) {
	t.Parallel()
	b := setup(t, impatient)
	j := b.Job(t, alice, "k")
	b.Finish(t, j.ID, job.StateCANCELLED, "")
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	reused := false
	ask := func(accept, body string) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, strings.NewReader(body))
		require.NoError(t, err)
		r.GetBody = nil // no second try on another connection
		r.Header.Set("Authorization", asAlice)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		resp, err := client.Do(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	ask("text/event-stream", request(watchEvents, `{"id":"`+j.ID+`"}`))
	for until := time.Now().Add(150 * time.Millisecond); time.Now().Before(until); {
		ask("application/json", request(`{ viewer { subject } }`, ""))
		require.True(t, reused)
	}
}
