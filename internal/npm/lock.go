package npm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Lock is what a package-lock.json says of packages.
type Lock struct {
	Packages map[string]struct { // by their place
		Version, Resolved, Integrity string
		Link                         bool
		Dependencies                 map[string]string // at run time
	}
}

// ReadLock reads a package-lock.json.
func ReadLock(text []byte) (Lock, error) {
	var l Lock
	if err := json.Unmarshal(text, &l); err != nil {
		return Lock{}, fmt.Errorf("read package-lock.json: %w", err)
	}
	if len(l.Packages) == 0 {
		return Lock{}, fmt.Errorf("read package-lock.json: it has no packages")
	}
	return l, nil
}

// NamesNoRegistry fails if a package would come from elsewhere than the registry that npm is set up for, or may be another
// one than it was: one without a digest. Packages of the lock's own folder are neither.
func (l Lock) NamesNoRegistry() error {
	for place, p := range l.Packages {
		if strings.Contains(p.Resolved, "://") {
			return fmt.Errorf("package-lock.json: %s: %q names a registry", place, p.Resolved)
		}
		if strings.HasPrefix(place, "node_modules/") && !p.Link && p.Integrity == "" && !l.own(place) {
			return fmt.Errorf("package-lock.json: %s has no integrity", place)
		}
	}
	return nil
}

// own reports whether the package is a folder that a link leads to.
func (l Lock) own(place string) bool {
	for _, p := range l.Packages {
		if p.Link && p.Resolved == place {
			return true
		}
	}
	return false
}
