package canonical

import (
	"bytes"
	"hash/maphash"
)

// key is an object key: where its bytes are in the text, or, if it had escapes, in scanner.unescaped.
type key struct {
	start, end int
	unescaped  bool
}

// smallObject is how many keys are compared one by one before an object gets a hash table.
const smallObject = 16

// hashSeed is random, so that nobody can choose keys that meet in one slot.
var hashSeed = maphash.MakeSeed()

func (s *scanner) keyBytes(k key) []byte {
	if k.unescaped {
		return s.unescaped[k.start:k.end]
	}
	return s.raw[k.start:k.end]
}

// addKey adds the key at raw[start:end] to the object on top and says whether it is new there.
func (s *scanner) addKey(start, end int, escapes bool) bool {
	k := key{start: start, end: end}
	if escapes {
		k.unescaped = true
		k.start = len(s.unescaped)
		s.unescaped = appendUnescaped(s.unescaped, s.raw[start:end])
		k.end = len(s.unescaped)
	}
	f := &s.frames[len(s.frames)-1]
	name := s.keyBytes(k)
	fresh := true
	if f.slots == 0 {
		for _, other := range s.keys[f.keys:] {
			if bytes.Equal(s.keyBytes(other), name) {
				fresh = false
				break
			}
		}
	}
	s.keys = append(s.keys, k)
	count := len(s.keys) - f.keys
	if f.slots > 0 {
		fresh = s.insert(f, int32(count-1))
	}
	if count == smallObject && f.slots == 0 || count*2 > f.slots && f.slots > 0 {
		s.grow(f, count)
	}
	return fresh
}

// grow gives an object a table of at least four slots a key. The table is the last one in tables: objects inside of
// this one are closed.
func (s *scanner) grow(f *frame, count int) {
	slots := max(f.slots, smallObject)
	for slots < count*4 {
		slots *= 2
	}
	if need := f.table + slots; need <= cap(s.tables) {
		s.tables = s.tables[:need]
	} else {
		grown := make([]int32, need, need*2)
		copy(grown, s.tables[:f.table])
		s.tables = grown
	}
	clear(s.tables[f.table:])
	f.slots = slots
	for i := range count {
		s.insert(f, int32(i))
	}
}

// insert puts the object's i-th key into its table and says whether the key was not there yet.
func (s *scanner) insert(f *frame, i int32) bool {
	table := s.tables[f.table : f.table+f.slots]
	keys := s.keys[f.keys:]
	name := s.keyBytes(keys[i])
	mask := uint64(f.slots - 1)
	for slot := maphash.Bytes(hashSeed, name) & mask; ; slot = (slot + 1) & mask {
		if table[slot] == 0 {
			table[slot] = i + 1
			return true
		}
		if bytes.Equal(s.keyBytes(keys[table[slot]-1]), name) {
			return false
		}
	}
}
