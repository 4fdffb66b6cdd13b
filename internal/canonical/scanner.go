package canonical

import (
	"strconv"
	"sync"
)

// Rules of a *SyntaxError.
const (
	ruleEmpty     = "The text is empty where a value must be."
	ruleBOM       = "The text starts with a byte order mark, which JSON does not allow."
	ruleEnd       = "The text ends before its value is complete."
	ruleValue     = "A value must start here."
	ruleKey       = "An object key in double quotes must start here."
	ruleColon     = "A colon must follow an object key."
	ruleComma     = "A comma or the end of the array or object must follow a value."
	ruleTrailing  = "Nothing may follow the value."
	ruleDepth     = "Arrays and objects are nested deeper than 512 levels."
	ruleDuplicate = "The key is repeated in its object."
	ruleUTF8      = "The text is not valid UTF-8."
	ruleSurrogate = "A \\u escape holds one half of a surrogate pair without the other."
	ruleEscape    = "A backslash in a string must start one of JSON's escapes."
	ruleControl   = "A control character in a string must be escaped."
	ruleNumber    = "A number must be written as JSON has it."
	ruleLiteral   = "A word that is not true, false or null stands where a value must be."
)

// frame is an array or object that is open.
type frame struct {
	object bool
	index  int // array: of the current element
	// object
	keys    int // where its keys start in scanner.keys
	escaped int // where they start in scanner.unescaped
	table   int // where its hash table starts in scanner.tables
	slots   int // of the table, a power of two, 0 while the object is small
	named   bool
}

// scanner reads one text once. Its slices are stacks that all open objects share: an object is closed before the one
// around it goes on, so what it holds is always on top.
type scanner struct {
	raw     []byte
	pos     int
	bounded bool   // refuse numbers out of bounds
	tagging bool   // write the tagged text to out
	out     []byte // tagged text

	frames    []frame
	keys      []key
	unescaped []byte
	tables    []int32
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func newScanner(raw []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.raw, s.pos = raw, 0
	return s
}

// retained bounds what a scanner keeps for the next text, in elements of each stack.
const retained = 1 << 14

func (s *scanner) release() {
	s.raw, s.out, s.bounded, s.tagging = nil, nil, false, false
	s.frames = s.frames[:0] // never beyond MaxDepth
	if s.keys = s.keys[:0]; cap(s.keys) > retained {
		s.keys = nil
	}
	if s.unescaped = s.unescaped[:0]; cap(s.unescaped) > retained {
		s.unescaped = nil
	}
	if s.tables = s.tables[:0]; cap(s.tables) > retained {
		s.tables = nil
	}
	scanners.Put(s)
}

type state int

const (
	wantValue state = iota
	wantFirstValue
	wantKey
	wantFirstKey
	afterValue
	done
)

func (s *scanner) run() error {
	if len(s.raw) >= 3 && string(s.raw[:3]) == "\xef\xbb\xbf" {
		return s.fail(ruleBOM)
	}
	if s.space(); s.pos == len(s.raw) {
		return s.fail(ruleEmpty)
	}
	st := wantValue
	for st != done {
		s.space()
		if s.pos == len(s.raw) {
			if st == afterValue && len(s.frames) == 0 {
				return nil
			}
			return s.fail(ruleEnd)
		}
		var err error
		switch st {
		case wantFirstValue, wantFirstKey:
			if c := s.raw[s.pos]; c == ']' && st == wantFirstValue || c == '}' && st == wantFirstKey {
				s.pop()
				st = afterValue
				continue
			}
			if st == wantFirstKey {
				st, err = s.key()
				break
			}
			s.frames[len(s.frames)-1].index = 0
			st, err = s.value()
		case wantValue:
			st, err = s.value()
		case wantKey:
			st, err = s.key()
		case afterValue:
			st, err = s.after()
		case done:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// after reads what follows a value.
func (s *scanner) after() (state, error) {
	if len(s.frames) == 0 {
		return done, s.fail(ruleTrailing)
	}
	top := &s.frames[len(s.frames)-1]
	c := s.raw[s.pos]
	switch {
	case c == ',' && top.object:
		top.named = false
		s.emitByte()
		return wantKey, nil
	case c == ',':
		top.index++
		s.emitByte()
		return wantValue, nil
	case c == '}' && top.object, c == ']' && !top.object:
		s.pop()
		return afterValue, nil
	}
	return done, s.fail(ruleComma)
}

func (s *scanner) value() (state, error) {
	switch c := s.raw[s.pos]; c {
	case '{', '[':
		if len(s.frames) == MaxDepth {
			return done, s.fail(ruleDepth)
		}
		s.frames = append(s.frames, frame{
			object: c == '{', index: -1, keys: len(s.keys), escaped: len(s.unescaped), table: len(s.tables),
		})
		s.emitByte()
		if c == '{' {
			return wantFirstKey, nil
		}
		return wantFirstValue, nil
	case '"':
		start := s.pos
		if _, err := s.skipString(); err != nil {
			return done, err
		}
		if s.tagging {
			s.out = append(s.out, '"', 's')
			s.out = append(s.out, s.raw[start+1:s.pos]...)
		}
		return afterValue, nil
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return afterValue, s.number()
	case 't':
		return afterValue, s.literal("true")
	case 'f':
		return afterValue, s.literal("false")
	case 'n':
		return afterValue, s.literal("null")
	}
	return done, s.fail(ruleValue)
}

func (s *scanner) key() (state, error) {
	if s.raw[s.pos] != '"' {
		return done, s.fail(ruleKey)
	}
	start := s.pos
	escapes, err := s.skipString()
	if err != nil {
		return done, err
	}
	if s.tagging {
		s.out = append(s.out, s.raw[start:s.pos]...)
	}
	fresh := s.addKey(start+1, s.pos-1, escapes)
	s.frames[len(s.frames)-1].named = true
	if !fresh {
		s.pos = start
		return done, s.fail(ruleDuplicate)
	}
	if s.space(); s.pos == len(s.raw) {
		return done, s.fail(ruleEnd)
	}
	if s.raw[s.pos] != ':' {
		return done, s.fail(ruleColon)
	}
	s.emitByte()
	return wantValue, nil
}

// emitByte takes over one byte of punctuation.
func (s *scanner) emitByte() {
	if s.tagging {
		s.out = append(s.out, s.raw[s.pos])
	}
	s.pos++
}

func (s *scanner) pop() {
	top := &s.frames[len(s.frames)-1]
	s.keys = s.keys[:top.keys]
	s.unescaped = s.unescaped[:top.escaped]
	s.tables = s.tables[:top.table]
	s.frames = s.frames[:len(s.frames)-1]
	s.emitByte()
}

func (s *scanner) space() {
	for s.pos < len(s.raw) {
		switch s.raw[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) literal(word string) error {
	if len(s.raw)-s.pos < len(word) || string(s.raw[s.pos:s.pos+len(word)]) != word {
		return s.fail(ruleLiteral)
	}
	if s.tagging {
		s.out = append(s.out, word...)
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) number() error {
	start := s.pos
	if s.raw[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.raw) && s.raw[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return s.fail(ruleNumber)
	}
	if s.pos < len(s.raw) && s.raw[s.pos] == '.' {
		if s.pos++; !s.digits() {
			return s.fail(ruleNumber)
		}
	}
	if s.pos < len(s.raw) && (s.raw[s.pos] == 'e' || s.raw[s.pos] == 'E') {
		if s.pos++; s.pos < len(s.raw) && (s.raw[s.pos] == '+' || s.raw[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return s.fail(ruleNumber)
		}
	}
	if s.pos < len(s.raw) && '0' <= s.raw[s.pos] && s.raw[s.pos] <= '9' { // after a leading zero
		return s.fail(ruleNumber)
	}
	if !s.bounded {
		return nil
	}
	if !s.tagging {
		var buffer [2 * MaxDigits]byte
		if _, rule := appendNumber(buffer[:0], s.raw[start:s.pos]); rule != "" {
			return &NumberError{Pointer: s.pointer(), Rule: rule}
		}
		return nil
	}
	var rule string
	s.out = append(s.out, '"', 'n')
	if s.out, rule = appendNumber(s.out, s.raw[start:s.pos]); rule != "" {
		return &NumberError{Pointer: s.pointer(), Rule: rule}
	}
	s.out = append(s.out, '"')
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.raw) && '0' <= s.raw[s.pos] && s.raw[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) fail(rule string) error {
	return &SyntaxError{Offset: int64(s.pos), Pointer: s.pointer(), Rule: rule}
}

// pointer names the value that is being read.
func (s *scanner) pointer() string {
	var pointer []byte
	for i := range s.frames {
		f := &s.frames[i]
		var token string
		switch {
		case f.object && !f.named, !f.object && f.index < 0:
			return string(pointer)
		case f.object:
			last := len(s.keys) - 1
			if i+1 < len(s.frames) {
				last = s.frames[i+1].keys - 1
			}
			token = pointerEscaper.Replace(string(s.keyBytes(s.keys[last])))
		default:
			token = strconv.Itoa(f.index)
		}
		if len(pointer)+1+len(token) > pointerMax {
			return string(pointer)
		}
		pointer = append(append(pointer, '/'), token...)
	}
	return string(pointer)
}
