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
const maxKept = 1 << 20

// send writes body as the answer. It fails if the body is no JSON, before
// anything is sent.
func (s *encoders) send(w http.ResponseWriter, status int, contentType string, body any) error {
	e := s.pool.Get().(*encoder)
	e.buf.Reset()
	if err := e.json.Encode(body); err != nil {
		return err // and drop the encoder, which keeps its error
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(e.buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(e.buf.Bytes()) // a caller that went away needs no answer
	if e.buf.Cap() <= maxKept {
		s.pool.Put(e)
	}
	return nil
}

// answer sends body with a status.
func (a *api) answer(w http.ResponseWriter, status int, body any) error {
	return a.encoders.send(w, status, "application/json", body)
}

// fail sends the problem that an error is, and logs the error if it was not
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
	if err := a.encoders.send(x, p.problem().Status, "application/problem+json", p); err != nil {
		a.log.Error("problem not sent", slog.String("request_id", x.id), slog.Any("error", err))
		x.WriteHeader(http.StatusInternalServerError)
	}
}
