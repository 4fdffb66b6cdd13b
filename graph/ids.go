package graph

import "go.jetify.com/typeid"

const (
	jobPrefix     = "job"
	attemptPrefix = "att"
)

// kindOf returns an id's prefix, "" if it is no well-formed id of ours.
func kindOf(id string) string {
	t, err := typeid.FromString(id)
	if err != nil {
		return ""
	}
	switch p := t.Prefix(); p {
	case jobPrefix, attemptPrefix:
		return p
	}
	return ""
}
