package rest

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
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

func (a *API) stage(rec *responseRecorder, status int, contentType string, body any) (err error) {
	if rec.answer, err = a.encoders.get(body); err == nil {
		rec.answerStatus, rec.answerType = status, contentType
	}
	return err
}

// finish sends the answer and releases the memory of the request.
func (a *API) finish(rec *responseRecorder) {
	defer rec.memory.Release()
	if rec.answer == nil {
		return
	}
	e := rec.answer
	rec.memory.Shrink(int64(len(e.text)))
	rec.SetHeader("Content-Type", rec.answerType)
	rec.SetHeader("Content-Length", strconv.Itoa(len(e.text)))
	rec.WriteHeader(rec.answerStatus)
	_, _ = rec.Write(e.text) // a caller that went away needs no answer
	a.encoders.put(e)
}

// fail answers with the problem of an error. It logs an error without a known problem.
func (a *API) fail(rec *responseRecorder, r *http.Request, err error) {
	p, foreseen := a.problemOf(err)
	if !foreseen {
		a.cfg.Log.ErrorContext(r.Context(), "request failed", "request_id", rec.RequestID, "route", rec.Route, "error", err)
	}
	a.sendProblem(rec, p)
}

func (a *API) sendProblem(rec *responseRecorder, p Problemer) {
	for name, values := range p.Base().header {
		rec.Header()[name] = values
	}
	if err := a.stage(rec, p.Base().Status, MediaProblem, p); err != nil {
		a.cfg.Log.Error("problem not sent", slog.String("request_id", rec.RequestID), slog.Any("error", err))
		rec.WriteHeader(http.StatusInternalServerError)
	}
}
