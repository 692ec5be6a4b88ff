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

// maxDepth is the deepest nesting of a value in a request. Much deeper values would exhaust the stack of later
// readers.
const maxDepth = 100

// Lenient leaves some errors to the forms: a string with half a character is an error of its field, and the
// last of several equal members counts.
var Lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Reader reads a JSON text once, without building anything. After the first syntax error, it stops, and Err
// is set.
type Reader struct {
	data []byte
	json *jsontext.Decoder
	deep bool // the last value is nested deeper than maxDepth
	Err  error
}

func newReader(data []byte) *Reader {
	return &Reader{data: data, json: jsontext.NewDecoder(bytes.NewBuffer(data), Lenient)}
}

// readers reuses readers for objects within requests, because making one takes longer than reading a short object.
var readers = sync.Pool{New: func() any { return newReader(nil) }}

// ReadAgain reads a text that was read as a value before.
func ReadAgain(data []byte, read func(*Reader)) {
	r := readers.Get().(*Reader)
	defer readers.Put(r)
	r.data, r.deep, r.Err = data, false, nil
	r.json.Reset(bytes.NewBuffer(data), Lenient)
	read(r)
	r.data = nil
	r.json.Reset(&bytes.Buffer{}, Lenient) // drop the data of the request
}

// fail stops the reader and records the line and column of a syntax error.
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

// Offset returns the position of the reader in the text, in bytes.
func (r *Reader) Offset() int64 { return r.json.InputOffset() }

// Peek returns the kind of the next token, a byte like '{' or '"'.
func (r *Reader) Peek() jsontext.Kind { return r.json.PeekKind() }

// skipToken reads the next token, and reports whether there was one.
func (r *Reader) skipToken() bool {
	if r.Err != nil {
		return false
	}
	_, err := r.json.ReadToken()
	r.fail(err)
	return err == nil
}

// Members yields the names of the next object. The caller reads the value of each before it continues; the
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

// elements yields the indexes of the next array. The caller reads each value before it continues.
func (r *Reader) elements(yield func(i int) bool) {
	i := -1
	r.within(func() bool {
		i++
		return yield(i)
	})
}

// within skips the brackets of an object or array, and calls read for each of its parts.
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

// Value skips the next value and returns its text.
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

// End sets Err unless only white space follows.
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

// Unquote decodes the text of a JSON string. It returns false if an escape stands for half a character:
// two different strings of this kind must not become equal.
func Unquote(text []byte) (string, bool) {
	if plain := text[1 : len(text)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain), true
	}
	s, err := jsontext.AppendUnquote(nil, text)
	return string(s), err == nil
}

// HalfPair is the error of a string with a single escape like \ud800: it stands for no text, and decoders
// treat it differently.
const HalfPair = "must be valid Unicode: it has half of a surrogate pair"

// addHalves adds an error for each string and each name in a value that has half of a surrogate pair, at its
// place. The errors from since on belong to the same value; a place with an error gets no second one.
func (e *FieldErrors) addHalves(name string, raw []byte, since int) {
	if !bytes.Contains(raw, []byte(`\ud`)) && !bytes.Contains(raw, []byte(`\uD`)) {
		return // nearly always
	}
	known := map[string]bool{}
	for _, one := range e.List[min(since, len(e.List)):] {
		known[one.Field] = true
	}
	ReadAgain(raw, func(r *Reader) {
		r.halves(name, func(place, wrong string, text []byte) {
			if !known[place] {
				e.AddJSON(place, wrong, text)
			}
		})
	})
}

// halves finds half pairs in the next value.
func (r *Reader) halves(place string, found func(place, wrong string, text []byte)) {
	switch r.Peek() {
	case '{':
		r.within(func() bool {
			quoted, err := r.json.ReadValue()
			if r.fail(err); err != nil {
				return false
			}
			name, whole := Unquote(quoted)
			member := Under(place, Short([]byte(name)))
			if !whole {
				found(member, "must have a name that is valid Unicode: it has half of a surrogate pair", quoted)
			}
			r.halves(member, found)
			return true
		})
	case '[':
		for i := range r.elements {
			r.halves(Item(place, i), found)
		}
	case '"':
		text := r.Value()
		if _, whole := Unquote(text); !whole {
			found(place, HalfPair, text)
		}
	default:
		r.Value()
	}
}
