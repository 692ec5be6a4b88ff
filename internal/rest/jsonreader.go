package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep a value of a request may be nested. Far deeper ones would exhaust the stacks of those who read
// them later.
const maxDepth = 100

// Lenient leaves to the form what it can say better: a string with half a character is a fault of its field, and the
// last of several members counts.
var Lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Reader walks over a JSON text once, without building anything. After the first syntax error it stands still and err
// is set.
type Reader struct {
	data []byte
	json *jsontext.Decoder
	deep bool // the value read last is nested deeper than maxDepth
	Err  error
}

func newReader(data []byte) *Reader {
	return &Reader{data: data, json: jsontext.NewDecoder(bytes.NewBuffer(data), Lenient)}
}

// readers keeps readers for the objects within requests: to make one takes longer than to read a short object.
var readers = sync.Pool{New: func() any { return newReader(nil) }}

// ReadAgain reads a text that was read as a value before.
func ReadAgain(data []byte, read func(*Reader)) {
	r := readers.Get().(*Reader)
	defer readers.Put(r)
	r.data, r.deep, r.Err = data, false, nil
	r.json.Reset(bytes.NewBuffer(data), Lenient)
	read(r)
	r.data = nil
	r.json.Reset(&bytes.Buffer{}, Lenient) // keep nothing of the request
}

// fail stops the reader, and says where the text stops being JSON.
func (r *Reader) fail(err error) {
	if r.Err != nil || err == nil {
		return
	}
	at, why := r.json.InputOffset(), err
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		at, why = syntax.ByteOffset, syntax.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, why = int64(len(r.data)), errors.New("it ends too early")
	}
	before := r.data[:min(at, int64(len(r.data)))]
	r.Err = fmt.Errorf("is not valid JSON at line %d, column %d: %w",
		1+bytes.Count(before, []byte{'\n'}), 1+utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):]), why)
}

// Offset is where the reader stands in the text.
func (r *Reader) Offset() int64 { return r.json.InputOffset() }

// Peek returns the kind of what comes next, a byte like '{' or '"'.
func (r *Reader) Peek() jsontext.Kind { return r.json.PeekKind() }

// skipToken reads the next token. It reports whether there was one.
func (r *Reader) skipToken() bool {
	if r.Err != nil {
		return false
	}
	_, err := r.json.ReadToken()
	r.fail(err)
	return err == nil
}

// Members yields the names of the object that comes next. The caller reads the value of each before it goes on; the
// name is valid until then.
func (r *Reader) Members(yield func(name []byte) bool) {
	r.within(func() bool {
		quoted, err := r.json.ReadValue()
		r.fail(err)
		return err == nil && yield(plainName(quoted))
	})
}

func plainName(quoted []byte) []byte {
	if name := quoted[1 : len(quoted)-1]; bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	name, _ := Unquote(quoted)
	return []byte(name)
}

// elements yields the indexes of the array that comes next. The caller reads each value before it goes on.
func (r *Reader) elements(yield func(i int) bool) {
	i := -1
	r.within(func() bool {
		i++
		return yield(i)
	})
}

// within moves over the brackets of an object or array, and over each of its parts by read.
func (r *Reader) within(read func() bool) {
	if !r.skipToken() {
		return
	}
	for k := r.Peek(); r.Err == nil && k != '}' && k != ']'; k = r.Peek() {
		if !read() {
			return
		}
	}
	r.skipToken()
}

// Value moves over the value that comes next and returns its text.
func (r *Reader) Value() []byte {
	if r.Err != nil {
		return nil
	}
	outside := r.json.StackDepth()
	r.deep = false
	if k := r.Peek(); k != '{' && k != '[' {
		v, err := r.json.ReadValue()
		if r.fail(err); err != nil {
			return nil
		}
		end := r.Offset()
		return r.data[end-int64(len(v)) : end]
	}
	var from int64
	for n := 0; ; n++ {
		if !r.skipToken() {
			return nil
		}
		depth := r.json.StackDepth() - outside
		if n == 0 {
			from = r.json.InputOffset() - 1
		}
		if r.deep = r.deep || depth > maxDepth; depth == 0 {
			return r.data[from:r.json.InputOffset()]
		}
	}
}

// End demands that nothing but white space follows.
func (r *Reader) End() {
	if r.Err != nil {
		return
	}
	switch _, err := r.json.ReadToken(); {
	case err == nil:
		r.fail(errors.New("something follows its end"))
	case !errors.Is(err, io.EOF):
		r.fail(err)
	}
}

// Unquote returns what the text of a JSON string stands for. It is false where an escape stands for half a character:
// two such strings must not become equal.
func Unquote(text []byte) (string, bool) {
	if plain := text[1 : len(text)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain), true
	}
	s, err := jsontext.AppendUnquote(nil, text)
	return string(s), err == nil
}
