package schemasubset

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// Back turns an answer in the form into one of the original schema: a null that stands for a property that is not there
// is left out, with its key and one comma. Every other byte stays as it is. What does not fit the form stays too, so that nothing
// that is wrong is made right.
func (f *Form) Back(output []byte) []byte {
	if !json.Valid(output) {
		return output
	}
	b := back{form: f, text: string(output)}
	b.value(gjson.Parse(b.text), []*node{f.root})
	if len(b.cuts) == 0 {
		return output
	}
	kept := make([]byte, 0, len(output))
	at := 0
	for _, cut := range b.cuts {
		kept = append(kept, b.text[at:cut.from]...)
		at = cut.to
	}
	return append(kept, b.text[at:]...)
}

type back struct {
	form *Form
	text string
	cuts []span // in order, not overlapping
}

type span struct{ from, to int }

// value looks at a value of one of the nodes. A value's index is its place in the text.
func (b *back) value(v gjson.Result, nodes []*node) {
	var leaves []*node
	for _, n := range nodes {
		leaves = append(leaves, b.form.leaves(n)...)
	}
	switch {
	case v.IsObject():
		b.object(v, leaves)
	case v.IsArray():
		var items []*node
		for _, l := range leaves {
			if l.items != nil {
				items = append(items, l.items)
			}
		}
		if items == nil {
			return
		}
		v.ForEach(func(_, e gjson.Result) bool {
			b.value(e, items)
			return true
		})
	}
}

type pair struct {
	key      string
	value    gjson.Result
	from, to int // from the key's first byte to behind the value's last
}

func (b *back) object(v gjson.Result, leaves []*node) {
	var pairs []pair
	keys := map[string]bool{}
	v.ForEach(func(k, e gjson.Result) bool {
		pairs = append(pairs, pair{key: k.String(), value: e, from: k.Index, to: e.Index + len(e.Raw)})
		keys[k.String()] = true
		return true
	})
	n := pick(leaves, pairs)
	if n == nil || len(keys) < len(pairs) { // a key twice is wrong, and stays so
		return
	}
	left := 0 // pairs that stay, so far
	for i, p := range pairs {
		prop := n.props[slices.IndexFunc(n.props, func(q *property) bool { return q.key == p.key })]
		if !prop.absent || p.value.Type != gjson.Null {
			b.value(p.value, []*node{prop.node})
			left++
			continue
		}
		switch {
		case i+1 < len(pairs):
			b.cuts = append(b.cuts, span{p.from, pairs[i+1].from})
		case left > 0:
			b.last(pairs, i, n)
		default:
			b.cuts = append(b.cuts, span{p.from, p.to})
		}
	}
}

// last cuts the last pair, with the comma after the last one that stays: the cuts between them begin just there.
func (b *back) last(pairs []pair, i int, n *node) {
	j := i - 1
	for ; j >= 0; j-- {
		prop := n.props[slices.IndexFunc(n.props, func(q *property) bool { return q.key == pairs[j].key })]
		if !prop.absent || pairs[j].value.Type != gjson.Null {
			break
		}
	}
	b.cuts = slices.DeleteFunc(b.cuts, func(s span) bool { return s.from > pairs[j].to })
	b.cuts = append(b.cuts, span{pairs[j].to, pairs[i].to})
}

// pick returns the object that the pairs are of: all its properties and no other, and the values that it lists.
func pick(leaves []*node, pairs []pair) *node {
	for _, n := range leaves {
		if !n.object || len(n.props) != len(pairs) {
			continue
		}
		fits := true
		for _, p := range pairs {
			i := slices.IndexFunc(n.props, func(q *property) bool { return q.key == p.key })
			fits = fits && i >= 0 && (!n.props[i].required || !n.props[i].node.valued || holds(n.props[i].node, p.value))
		}
		if fits {
			return n
		}
	}
	return nil
}
