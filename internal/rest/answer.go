package rest

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

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
