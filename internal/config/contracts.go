package config

import (
	"fmt"
	"slices"
	"time"
)

func (l *loader) contracts(c Contracts) {
	for i, k := range c.TrustedKeys {
		path := fmt.Sprintf("contracts.trusted_keys[%d]", i)
		if k == "" {
			l.problem(path, "must name a file with a public key")
		} else if slices.Contains(c.TrustedKeys[:i], k) {
			l.problem(path, "is named twice")
		}
	}
	l.oneOf("contracts.recheck", c.Recheck, RecheckOff, RecheckFallbacks, RecheckRoute)
	l.duration("contracts.before", c.Before, time.Hour, 30*day)
}
