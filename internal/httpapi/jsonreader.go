package httpapi

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep a value of a request may be nested. Far deeper ones
// would exhaust the stacks of those who read them later.
const maxDepth = 100

// reader walks over a JSON text once, without building anything. After the
// first syntax error it stands still and err is set.
type reader struct {
	data []byte
	pos  int
	deep bool // the value read last is nested deeper than maxDepth
	err  *syntaxError
}

// syntaxError says where a text stops being JSON.
type syntaxError struct {
	line, column int
	found, want  string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("is not valid JSON: found %s at line %d, column %d, where %s should be", e.found, e.line, e.column, e.want)
}

// fail stops the reader at its position.
func (r *reader) fail(want string) {
	if r.err != nil {
		return
	}
	before := r.data[:min(r.pos, len(r.data))]
	e := &syntaxError{
		line: 1 + bytes.Count(before, []byte{'\n'}), column: 1 + utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):]),
		found: "the end", want: want,
	}
	if r.pos < len(r.data) {
		c, _ := utf8.DecodeRune(r.data[r.pos:])
		e.found = strconv.QuoteRune(c)
	}
	r.err = e
}

// peek skips white space and returns the next byte, or 0 at the end.
func (r *reader) peek() byte {
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take moves over the byte c, which must come next.
func (r *reader) take(c byte) bool {
	if r.err == nil && r.peek() == c && r.pos < len(r.data) {
		r.pos++
		return true
	}
	r.fail(strconv.QuoteRune(rune(c)))
	return false
}

// end demands that nothing but white space follows.
func (r *reader) end() {
	if r.err == nil && (r.peek() != 0 || r.pos < len(r.data)) {
		r.fail("the end")
	}
}

// members yields the names of the object that comes next. The caller reads the
// value of each before it goes on.
func (r *reader) members(yield func(name []byte) bool) {
	if !r.take('{') {
		return
	}
	if r.peek() == '}' {
		r.pos++
		return
	}
	for {
		name := r.name()
		if r.err != nil || !yield(name) || !r.more('}') {
			return
		}
	}
}

// elements yields the indexes of the array that comes next. The caller reads
// each value before it goes on.
func (r *reader) elements(yield func(i int) bool) {
	if !r.take('[') {
		return
	}
	if r.peek() == ']' {
		r.pos++
		return
	}
	for i := 0; r.err == nil && yield(i) && r.more(']'); i++ {
	}
}

// more moves over a comma, or over the closing bracket and is false.
func (r *reader) more(closing byte) bool {
	if r.err != nil {
		return false
	}
	switch r.peek() {
	case ',':
		r.pos++
		return true
	case closing:
		r.pos++
	default:
		r.fail("',' or " + strconv.QuoteRune(rune(closing)))
	}
	return false
}

// name reads the name of a member and its colon.
func (r *reader) name() []byte {
	if r.peek() != '"' {
		r.fail("a name in quotes")
		return nil
	}
	from := r.pos
	r.skipString()
	if r.err != nil {
		return nil
	}
	name := r.data[from+1 : r.pos-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		s, _ := unquote(r.data[from:r.pos])
		name = []byte(s)
	}
	r.take(':')
	return name
}

// value moves over the value that comes next and returns its text.
func (r *reader) value() []byte {
	r.peek()
	from := r.pos
	r.deep = false
	r.skip(1)
	return r.data[from:r.pos]
}

func (r *reader) skip(depth int) {
	switch c := r.peek(); {
	case c == '"':
		r.skipString()
	case (c == '{' || c == '[') && depth > maxDepth:
		r.deep = true
		r.leap()
	case c == '{':
		for range r.members {
			r.skip(depth + 1)
		}
	case c == '[':
		for range r.elements {
			r.skip(depth + 1)
		}
	case c == '-' || c >= '0' && c <= '9':
		r.skipNumber()
	case c == 't':
		r.skipWord("true")
	case c == 'f':
		r.skipWord("false")
	case c == 'n':
		r.skipWord("null")
	default:
		r.fail("a value")
	}
}

// leap moves over an object or array by its brackets alone, however deep.
func (r *reader) leap() {
	for open := 0; r.err == nil; {
		switch r.peek() {
		case '"':
			r.skipString()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if r.pos == len(r.data) {
			r.fail("a closing bracket")
			return
		}
		if r.pos++; open == 0 {
			return
		}
	}
}

func (r *reader) skipWord(word string) {
	if !bytes.HasPrefix(r.data[r.pos:], []byte(word)) {
		r.fail("a value")
		return
	}
	r.pos += len(word)
}
