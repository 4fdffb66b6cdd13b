package schemasubset

import (
	"maps"
	"slices"
)

// recursive returns a node that lies within itself, nil if none does.
func (f *Form) recursive() *node {
	const visiting, done = 1, 2
	state := map[*node]int{}
	var walk func(*node) *node
	walk = func(n *node) *node {
		if n == nil || state[n] == done {
			return nil
		}
		if state[n] == visiting {
			return n
		}
		state[n] = visiting
		inside := slices.Clone(n.anyOf)
		if n.ref != "" {
			inside = append(inside, f.target(n.ref))
		}
		for _, p := range n.props {
			inside = append(inside, p.node)
		}
		for _, i := range append(inside, n.items) {
			if found := walk(i); found != nil {
				return found
			}
		}
		state[n] = done
		return nil
	}
	found := walk(f.root)
	for _, name := range slices.Sorted(maps.Keys(f.defs)) {
		if found == nil {
			found = walk(f.defs[name])
		}
	}
	return found
}

// cycle looks for a way from n back to itself that passes no property which may be left out, and says where it closes.
func (f *Form) cycle(n *node, open, done map[*node]bool) (string, bool) {
	if n == nil || done[n] {
		return "", false
	}
	if open[n] {
		return n.at, true
	}
	open[n] = true
	next := slices.Clone(n.anyOf)
	if n.ref != "" {
		next = append(next, f.target(n.ref))
	}
	next = append(next, n.items)
	for _, p := range n.props {
		if p.required {
			next = append(next, p.node)
		}
	}
	for _, m := range next {
		if at, ok := f.cycle(m, open, done); ok {
			return at, true
		}
	}
	open[n], done[n] = false, true
	return "", false
}
