package httpapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
)

// encoder is a buffer and the JSON encoder that fills it.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// encoders keeps encoders for later answers.
type encoders struct{ pool sync.Pool }

func newEncoders() *encoders {
	return &encoders{sync.Pool{New: func() any {
		e := &encoder{}
		e.json = json.NewEncoder(&e.buf)
		e.json.SetEscapeHTML(false)
		return e
	}}}
}

// maxKept is how large a buffer may be to be kept.
const maxKept = 64 << 10

// get returns an encoder that holds body. It fails if body is no JSON.
func (s *encoders) get(body any) (*encoder, error) {
	e := s.pool.Get().(*encoder)
	e.buf.Reset()
	if err := e.json.Encode(body); err != nil {
		return nil, err // and drop the encoder, which keeps its error
	}
	return e, nil
}

func (s *encoders) put(e *encoder) {
	if e.buf.Cap() <= maxKept {
		s.pool.Put(e)
	}
}

// answer has body sent with a status, when the handler has returned: what it holds is
// garbage by then, however long the caller takes for the answer.
func (a *api) answer(x *exchange, status int, body any) error {
	return a.stage(x, status, "application/json", body)
}

func (a *api) stage(x *exchange, status int, contentType string, body any) (err error) {
	if x.answer, err = a.encoders.get(body); err == nil {
		x.answerStatus, x.answerType = status, contentType
	}
	return err
}

// finish sends the answer, and gives back the memory that the request had.
func (a *api) finish(x *exchange) {
	defer x.memory.Release()
	if x.answer == nil {
		return
	}
	e := x.answer
	x.memory.Shrink(int64(e.buf.Len()))
	h := x.Header()
	h.Set("Content-Type", x.answerType)
	h.Set("Content-Length", strconv.Itoa(e.buf.Len()))
	x.WriteHeader(x.answerStatus)
	_, _ = x.Write(e.buf.Bytes()) // a caller that went away needs no answer
	a.encoders.put(e)
}

// fail has the problem sent that an error is, and logs the error if it was not
// foreseen.
func (a *api) fail(x *exchange, r *http.Request, err error) {
	p, foreseen := problemOf(err)
	if !foreseen {
		a.log.ErrorContext(r.Context(), "request failed", "request_id", x.id, "route", x.route, "error", err)
	}
	a.sendProblem(x, p)
}

func (a *api) sendProblem(x *exchange, p problemer) {
	for name, values := range p.problem().header {
		x.Header()[name] = values
	}
	if err := a.stage(x, p.problem().Status, "application/problem+json", p); err != nil {
		a.log.Error("problem not sent", slog.String("request_id", x.id), slog.Any("error", err))
		x.WriteHeader(http.StatusInternalServerError)
	}
}
