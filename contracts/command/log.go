package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
)

// ShowLog writes the changes of gates, as table or json.
func ShowLog(events []gate.Event, format report.Format, std Streams) int {
	var err error
	switch format {
	case "", report.Table:
		err = logTable(std.Out, events)
	case report.JSON:
		if events == nil {
			events = []gate.Event{}
		}
		enc := json.NewEncoder(std.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(struct {
			Format int          `json:"format"`
			Events []gate.Event `json:"events"`
		}{1, events})
	default:
		err = fmt.Errorf("the log is written as table or json, not as %q", format)
	}
	if err != nil {
		return unusable(std, err)
	}
	return ExitPassed
}

func logTable(w io.Writer, events []gate.Event) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "AT\tTASK\tTARGET\tFROM\tTO\tREASONS")
	for _, e := range events {
		reasons := strings.Join(e.Reasons, " ")
		if reasons == "" {
			reasons = "-"
		}
		// A reason may quote what a target answered: one line is one event.
		reasons = strings.Join(strings.Fields(reasons), " ")
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", e.At.UTC().Format(time.RFC3339), e.Task, e.Target, e.From, e.To, reasons)
	}
	return tw.Flush()
}
