package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Parts are the parts of a Basis by name, such as task/system.tmpl, task/temperature, case/refund, golden/refund.golden.json or
// provider/base_url. A short JSON scalar that may be shown stands as it is, after an equals sign; anything else is a short digest.
type Parts map[string]string

// The groups of parts: what stands before the first slash of a name.
const (
	PartTask     = "task/"     // of the task version: a file, or a key of task.yaml
	PartCase     = "case/"     // a case
	PartGolden   = "golden/"   // what is recorded for a case, by file
	PartProvider = "provider/" // of the provider's configuration, and the adapter
)

// maxShown is the length of the longest value that is kept as it is.
const maxShown = 64

// Show keeps the value itself if it is a short scalar, else its digest. Keys and addresses do not belong here.
func (p Parts) Show(name string, value json.RawMessage) {
	if len(value) <= maxShown && !bytes.ContainsAny(value, "{[") {
		p[name] = "=" + strings.Trim(string(value), `"`)
		return
	}
	p.Hide(name, value)
}

// Hide keeps the value's digest only.
func (p Parts) Hide(name string, value []byte) {
	sum := sha256.Sum256(value)
	p[name] = "sha256:" + hex.EncodeToString(sum[:6])
}

// Change is a part that is not what it was.
type Change struct {
	Name     string
	Had, Got string // empty: was or is not there
}

// Values are what the part was and is; ok is false unless both are there and may be shown.
func (c Change) Values() (had, got string, ok bool) {
	had, shownHad := strings.CutPrefix(c.Had, "=")
	got, shownGot := strings.CutPrefix(c.Got, "=")
	return had, got, shownHad && shownGot
}

// Changes lists the parts of the groups that differ, in order of name. It is empty if one side has no parts at all, as the
// results of earlier versions: then nothing is known of them.
func (p Parts) Changes(now Parts, groups ...string) []Change {
	if len(p) == 0 || len(now) == 0 {
		return nil
	}
	names := maps.Clone(p)
	maps.Copy(names, now)
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		in := slices.ContainsFunc(groups, func(g string) bool { return strings.HasPrefix(name, g) })
		if in && p[name] != now[name] {
			out = append(out, Change{Name: name, Had: p[name], Got: now[name]})
		}
	}
	return out
}
