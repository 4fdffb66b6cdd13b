package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
)

// CheckFunc asks the gate.
type CheckFunc func(ctx context.Context, task *tasks.Definition, target string) (gate.Decision, error)

// Status is the gate's answer for one task and target.
type Status struct {
	Task        string     `json:"task"`
	Version     string     `json:"version"`
	TaskVersion string     `json:"task_version"`
	Target      string     `json:"target"`
	Role        string     `json:"role"` // primary, fallback or other; a primary needs no contract to be used
	State       gate.State `json:"state"`
	Allowed     bool       `json:"allowed"`
	Reasons     []string   `json:"reasons"`
	CheckedAt   *time.Time `json:"checked_at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`

	// Of the result that decides, if there is one.
	ResultID   string      `json:"result_id,omitempty"`
	Mode       report.Mode `json:"mode,omitempty"`
	RanBy      string      `json:"ran_by,omitempty"`
	SignedBy   string      `json:"signed_by,omitempty"` // of an imported result: the id of the trusted key
	AgeSeconds *int64      `json:"age_seconds,omitempty"`
}

// ShowStatus writes what the gate says of the selected tasks and targets, as table or json, and returns the exit code:
// ExitFailed if one of them is closed.
func ShowStatus(ctx context.Context, suites []contracts.Suite, check CheckFunc, o Options, std Streams) int {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return unusable(std, err)
	}
	if o.Format != report.Table && o.Format != report.JSON {
		return unusable(std, errors.New("the status is written as table or json"))
	}
	picked, err := pick(suites, o)
	if err != nil {
		return unusable(std, err)
	}
	code := ExitPassed
	list := make([]Status, 0, len(picked))
	for _, p := range picked {
		d, err := check(ctx, p.suite.Task, p.target)
		if err != nil {
			return unusable(std, err)
		}
		if !d.Allowed {
			code = ExitFailed
		}
		reasons := d.Reasons
		if reasons == nil {
			reasons = []string{}
		}
		status := Status{
			Task: p.suite.Task.Name, Version: p.suite.Task.Version, TaskVersion: p.suite.Task.Digest, Target: p.target, Role: p.role,
			State: d.State, Allowed: d.Allowed, Reasons: reasons, CheckedAt: d.CheckedAt, ExpiresAt: d.ExpiresAt,
			ResultID: d.ResultID, Mode: d.Mode, RanBy: d.RanBy, SignedBy: d.SignedBy,
		}
		if d.CheckedAt != nil {
			seconds := int64(d.Age.Seconds())
			status.AgeSeconds = &seconds
		}
		list = append(list, status)
	}
	var b bytes.Buffer
	if err := writeStatus(&b, o.Format, list); err != nil {
		return unusable(std, err)
	}
	if err := o.deliver(b.Bytes(), std.Out); err != nil {
		return unusable(std, err)
	}
	return code
}

func writeStatus(w io.Writer, format report.Format, list []Status) error {
	if format == report.JSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Format int      `json:"format"`
			Status []Status `json:"status"`
		}{1, list})
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "TASK\tVERSION\tTARGET\tROLE\tSTATE\tMODE\tRAN BY\tAGE\tEXPIRES")
	for _, s := range list {
		expires, age := "-", "-"
		if s.ExpiresAt != nil {
			expires = s.ExpiresAt.UTC().Format(time.RFC3339)
		}
		if s.AgeSeconds != nil {
			age = (time.Duration(*s.AgeSeconds) * time.Second).String()
		}
		by := s.RanBy
		if s.SignedBy != "" {
			by += " (imported)"
		}
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Task, s.Version, s.Target, s.Role, s.State,
			cmp.Or(string(s.Mode), "-"), cmp.Or(by, "-"), age, expires)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	separator := "\n"
	for _, s := range list {
		for _, r := range s.Reasons {
			if _, err := fmt.Fprintf(w, "%s%s at %s: %s\n", separator, s.Task, s.Target, r); err != nil {
				return err
			}
			separator = ""
		}
	}
	return nil
}
