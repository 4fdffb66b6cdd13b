package cassette

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/internal/loopback"
)

// What was recorded.
const (
	levelHTTP = "http" // requests and answers as they went over the wire
	levelSend = "send" // calls of an adapter that makes no HTTP requests, written as if they were some
)

// What answered.
const (
	originSimulated = "simulated"    // Docket itself
	originLocal     = "local server" // a program on the machine of the recording
	originRemote    = "remote"       // a server elsewhere
)

// description is what a cassette says of itself, in front of what was recorded.
type description struct {
	About          string    `yaml:"about"` // in words
	Origin         string    `yaml:"origin"`
	Level          string    `yaml:"level"`
	Endpoint       string    `yaml:"endpoint"` // the provider's base URL; none is no HTTP
	Kind           string    `yaml:"kind"`
	Target         string    `yaml:"target"`
	Task           string    `yaml:"task"`
	TaskVersion    string    `yaml:"task_version"`
	Case           string    `yaml:"case"`
	CaseDigest     string    `yaml:"case_digest"` // of this case alone
	ConfigDigest   string    `yaml:"config_digest"`
	AdapterVersion string    `yaml:"adapter_version"`
	RecordedAt     time.Time `yaml:"recorded_at"`
	Interactions   int       `yaml:"interactions"` // how many follow
}

// describe is the description of a recording that is made now, without its date and count.
func describe(s contracts.Suite, c contracts.Case, ep contracts.Endpoint) (description, error) {
	digest, err := c.Digest()
	if err != nil {
		return description{}, fmt.Errorf("case %q: %w", c.Name, err)
	}
	cfg := ep.Target.Config
	d := description{
		Level: levelHTTP, Endpoint: cfg.BaseURL, Kind: cfg.Kind, Target: ep.Target.ID, Task: s.Task.Name, TaskVersion: s.Task.Digest,
		Case: c.Name, CaseDigest: digest, ConfigDigest: ep.ConfigDigest, AdapterVersion: ep.Target.Sender.AdapterVersion(),
	}
	switch {
	case cfg.BaseURL == "":
		d.Level, d.Endpoint, d.Origin = levelSend, "none", originSimulated
		d.About = fmt.Sprintf("Simulated: the kind %s of Docket made these answers by itself, no model did. No HTTP was spoken: each request and "+
			"response below stands for one call of the adapter.", cfg.Kind)
	case onThisMachine(cfg.BaseURL):
		d.Origin = originLocal
		d.About = fmt.Sprintf("Local server: a program on the machine of the recording answered at %s. It speaks the protocol of the kind %s and is "+
			"not that kind's vendor.", cfg.BaseURL, cfg.Kind)
	default:
		d.Origin = originRemote
		d.About = fmt.Sprintf("Remote: the server at %s answered, asked by the adapter of the kind %s.", cfg.BaseURL, cfg.Kind)
	}
	return d, nil
}

// onThisMachine says whether an address is one of loopback. It describes and lets nothing pass, so names below localhost count,
// which are this machine's by RFC 6761 and which nobody who must be sure may trust.
func onThisMachine(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (loopback.Host(u.Host) || strings.HasSuffix(strings.ToLower(u.Hostname()), ".localhost"))
}

// differs lists in words what a recording was made for and is not any more. What follows from another difference is not named.
func (d description) differs(now description) []string {
	var list []string
	add := func(what, was, is string) bool {
		if was == is {
			return false
		}
		list = append(list, fmt.Sprintf("%s was %s and is %s now", what, orNothing(was), orNothing(is)))
		return true
	}
	add("the task", d.Task, now.Task)
	add("the task's version", d.TaskVersion, now.TaskVersion)
	add("the case", d.Case, now.Case)
	add("the case's digest", d.CaseDigest, now.CaseDigest)
	add("the target", d.Target, now.Target)
	// Each of these is part of the configuration's digest.
	part := add("the provider's kind", d.Kind, now.Kind)
	part = add("the adapter's version", d.AdapterVersion, now.AdapterVersion) || part
	part = add("the endpoint", d.Endpoint, now.Endpoint) || part
	if !part {
		add("the digest of the provider's configuration", d.ConfigDigest, now.ConfigDigest)
		// Written by us and following from the above, so somebody changed them.
		add("what the file says of its origin", d.Origin+", "+d.Level+": "+d.About, now.Origin+", "+now.Level+": "+now.About)
	}
	return list
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
