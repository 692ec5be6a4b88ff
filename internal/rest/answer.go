package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

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

// problemOf turns an error into an answer. It returns false for an unexpected error: its text is for the log only.
func (a *API) problemOf(err error) (p Problemer, known bool) {
	if p := a.cfg.Problem(err); p != nil {
		return p, true
	}
	var (
		bad   *BadRequest
		wrong invalid.FieldErrors
		other *Refusal
		scope *push.ScopeError
		full  *bulkhead.FullError
		stale *push.StaleError
	)
	switch {
	case errors.As(err, &bad):
		return bad.problem(), true
	case errors.As(err, &wrong):
		all := BadRequest{}
		all.AddAll("body", FieldErrors{List: wrong})
		return all.problem(), true
	case errors.As(err, &stale):
		p := StaleVersion.Because(stale.Error())
		return &p, true
	case errors.As(err, &scope):
		return scopeProblemOf(scope), true
	case errors.As(err, &other):
		p := other.Kind.Because(other.Detail)
		p.header = other.header
		return &p, true
	case errors.As(err, &full):
		return fullProblemOf(full), true
	}
	if p := PlainProblem(err, plainProblems); p != nil {
		return p, true
	}
	return unexpected(), false
}

// responseRecorder is the writer of handlers. It holds the answer until the handler has returned, and the fields of the
// request's log line.
type responseRecorder struct {
	http.ResponseWriter
	RequestID string    // the X-Request-Id
	Route     string    // the pattern, never the path, which has personal data
	tenant    uuid.UUID // Nil until the key is checked
	key       uuid.UUID // likewise
	user      uuid.UUID // instead of a key, in requests of the console
	status    int       // 0 until the answer begins

	memory       *bulkhead.Loan[uuid.UUID] // for the request and its answer; nil: little is needed
	answer       *encoder                  // the answer to send; nil: none, or it was sent
	answerStatus int
	answerType   string

	pushes []uuid.UUID // the pushes of the request, up to loggedPushes
	about  int         // the number of pushes

	stopping func() bool // see Config

	Whole context.Context // the request's context without the usual timeout

	room [4]string // for values of headers
	used int
}

// SetHeader sets a header, whose name is in the canonical form, without memory for each.
func (rec *responseRecorder) SetHeader(name, value string) {
	if rec.used == len(rec.room) {
		rec.Header()[name] = []string{value}
		return
	}
	at := rec.used
	rec.used++
	rec.room[at] = value
	rec.Header()[name] = rec.room[at : at+1 : at+1]
}

// WriteHeader records the status, and closes the connection if the program is about to stop.
func (rec *responseRecorder) WriteHeader(status int) {
	if rec.status == 0 {
		rec.status = status
		if rec.stopping() {
			rec.Header().Set("Connection", "close")
		}
	}
	rec.ResponseWriter.WriteHeader(status)
}

func (rec *responseRecorder) Write(b []byte) (int, error) {
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	return rec.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (rec *responseRecorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

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

// harden sets the security headers of every answer: no answer may be framed, run, or taken for
// another type, and a tenant's data is never cached. The terminator of TLS sets Strict-Transport-Security.
func harden(h http.Header, path string) {
	h["X-Content-Type-Options"] = nosniff
	h["Content-Security-Policy"] = showNothing
	h["X-Frame-Options"] = deny
	h["Referrer-Policy"] = noReferrer
	h["Cross-Origin-Opener-Policy"] = sameOrigin
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	if path == "/v1" || strings.HasPrefix(path, "/v1/") {
		h["Cache-Control"] = noStore
	}
}

// All answers share these values, which are never changed.
var (
	nosniff     = []string{"nosniff"}
	showNothing = []string{"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
	deny        = []string{"DENY"}
	noReferrer  = []string{"no-referrer"}
	sameOrigin  = []string{"same-origin"}
	noStore     = []string{"no-store"}
)

// styleOnly returns the policy of a page that may use its one inline style sheet and nothing
// else.
func styleOnly(page []byte) string {
	_, rest, _ := bytes.Cut(page, []byte("<style>"))
	style, _, _ := bytes.Cut(rest, []byte("</style>"))
	hash := sha256.Sum256(style)
	return "style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; " + showNothing[0]
}

// ScriptAndStyle returns the policy of a page that runs the server's scripts, sends requests to this server, and makes style sheets with the nonce.
func ScriptAndStyle(nonce string) string {
	return "script-src 'self'; style-src 'nonce-" + nonce + "'; connect-src 'self'; img-src 'self' data:; " + showNothing[0]
}
