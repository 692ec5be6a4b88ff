package rest

import (
	"encoding/json"
	"sync"
)

// encoder is a text and the JSON encoder that fills it.
type encoder struct {
	text []byte
	json *json.Encoder
}

func (e *encoder) Write(b []byte) (int, error) {
	e.text = append(e.text, b...)
	return len(b), nil
}

// Appender writes itself like encoding/json, in half of the time: see docs/decisions/0007-own-decoder.md. A test compares
// both.
type Appender interface {
	AppendJSON(b []byte) []byte
}

// encoders reuses encoders.
type encoders struct{ pool sync.Pool }

func newEncoders() *encoders {
	return &encoders{sync.Pool{New: func() any {
		e := &encoder{}
		e.json = json.NewEncoder(e)
		e.json.SetEscapeHTML(false)
		return e
	}}}
}

// maxKept is the largest capacity of a text that is reused, in bytes.
const maxKept = 64 << 10

// get returns an encoder with the JSON of body. It fails if body has none.
func (s *encoders) get(body any) (*encoder, error) {
	e := s.pool.Get().(*encoder)
	e.text = e.text[:0]
	if a, ok := body.(Appender); ok {
		e.text = append(a.AppendJSON(e.text), '\n')
		return e, nil
	}
	if err := e.json.Encode(body); err != nil {
		return nil, err // and drop the encoder, which keeps its error
	}
	return e, nil
}

func (s *encoders) put(e *encoder) {
	if cap(e.text) <= maxKept {
		s.pool.Put(e)
	}
}
