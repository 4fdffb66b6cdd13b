package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/providertest"
)

// One identity can be followed from whoever called createJob to every provider request, whichever process sent it.
func TestEveryProviderRequestIsInTheJobsTrace(t *testing.T) {
	t.Parallel()
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := replicas(t, settings{database: fresh(t), places: 1, tasks: writeTasks(t)})
			for header, want := range map[string]string{
				"00-" + traceID + "-00f067aa0ba902b7-01": traceID, "": "", "00-nonsense": "",
			} {
				for _, r := range pair {
					r.fake.OnModel("primary", providertest.Error(400, "no"))
				}
				var headers []string
				if header != "" {
					headers = []string{"Traceparent", header}
				}
				before := [2]int{len(pair[0].fake.sent()), len(pair[1].fake.sent())}
				o := outcomeOf(t, pair[0].post(t, createMutation, variables{"input": variables{
					"idempotencyKey": "k" + header, "task": "echo", "input": variables{}, "fallbacks": []string{},
				}}, headers...))
				require.Equal(t, typeCreated, o.Typename)
				for range 3 {
					pair[0].becomes(t, o.Job.ID, "FAILED")
					require.Equal(t, typeStarted, pair[1].start(t, o.Job.ID, "").Typename)
				}
				pair[0].becomes(t, o.Job.ID, "FAILED")

				traces, spans := map[string]bool{}, map[string]bool{}
				for i, r := range pair {
					for _, e := range r.fake.sent()[before[i]:] {
						require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, e.Traceparent)
						traces[e.Traceparent[3:35]], spans[e.Traceparent[36:52]] = true, true
					}
				}
				require.Len(t, traces, 1, "one trace")
				require.Len(t, spans, 4, "each attempt is a span of its own")
				require.NotContains(t, spans, "00f067aa0ba902b7")
				if want != "" {
					require.Contains(t, traces, want)
				} else {
					require.NotContains(t, traces, traceID)
				}
			}
			res := pair[0].post(t, `{__type(name: "Job"){fields{name}}}`, nil)
			require.NotContains(t, res.text, "trace", "it is data of Docket's own")
		})
	}
}
