package rest

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

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
