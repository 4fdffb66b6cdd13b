package demo

import (
	"context"
	"time"

	"github.com/docket-gateway/docket/providers"
)

const forever = time.Duration(1<<63 - 1)

// simulation is one simulated request with the time-outs of a real one.
type simulation struct {
	ctx     context.Context
	cfg     providers.Config
	r       providers.Reporter
	total   *time.Timer
	linger  *time.Timer
	id      string
	unknown *providers.Failure
	end     providers.Outcome // set when pause returns false
}

// pause is d of silence. It returns false if the request ended in it. A time-out makes it unknown and the silence goes
// on into the linger; an answer that comes in time then is a late one.
func (s *simulation) pause(d, limit time.Duration, code string) bool {
	silence, patience := time.NewTimer(d), time.NewTimer(limit)
	defer silence.Stop()
	defer patience.Stop()
	for {
		var lingered <-chan time.Time
		running, deadline := patience.C, s.total.C
		if s.linger != nil {
			lingered, running, deadline = s.linger.C, nil, nil
		}
		select {
		case <-s.ctx.Done():
			return s.ends(&providers.Failure{Code: providers.CodeAborted, Message: "ended by us (simulated request)"})
		case <-lingered:
			return s.ends(s.unknown)
		case <-silence.C:
			return true
		case <-running:
			s.turnUnknown(code, "silence for "+limit.String()+" (simulated)")
		case <-deadline:
			s.turnUnknown(providers.CodeTotalTimeout, "not ended within "+s.cfg.TotalTimeout.String()+" (simulated)")
		}
	}
}

func (s *simulation) turnUnknown(code, message string) {
	s.unknown = &providers.Failure{Code: code, Message: message}
	s.linger = time.NewTimer(s.cfg.Linger)
	s.r.Unknown(*s.unknown)
}

func (s *simulation) ends(f *providers.Failure) bool {
	s.end = s.outcome(providers.Outcome{Kind: providers.Unknown, Failure: f})
	return false
}

func (s *simulation) acknowledge() {
	if s.unknown == nil {
		s.r.Acknowledged(providers.Acknowledgement{ProviderRequestID: s.id})
	}
}

func (s *simulation) progress() {
	if s.unknown == nil {
		s.r.Progress()
	}
}

func (s *simulation) outcome(out providers.Outcome) providers.Outcome {
	if s.linger != nil {
		s.linger.Stop()
	}
	out.ProviderRequestID = s.id
	return out
}
