package frame

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// inProcess is the http.RoundTripper of one page. The API of this program answers its calls for the user of the page, and inProcess
// records them.
type inProcess struct {
	api    http.Handler
	caller push.Caller
	w      http.ResponseWriter // of the page, to set deadlines for long answers
	page   *http.Request

	mu   sync.Mutex
	made []Call
}

// Call is a call that a page made.
type Call struct {
	Method, Path string // with the query
	Body         string // JSON; for an upload, @ and the name of a file
	Status       int
	Headers      []string // headers that it needs besides the key, as "name: value"
	Before       string   `json:",omitempty"` // the shell command before it
	Redacted     bool     `json:"-"`          // Body has placeholders instead of secrets
}

// leftOut replaces a body that is left out: curl reads it from a file.
const leftOut = "@body.json"

type uploadKey struct{}

// WithUpload returns a context for an upload whose file the console makes from the file of the user. before is the shell command that makes
// the file, or a comment that describes it. body is the file that curl reads.
func WithUpload(ctx context.Context, before, body string) context.Context {
	return context.WithValue(ctx, uploadKey{}, Call{Before: before, Body: body})
}

// WithShownBody returns a context for a call whose list shows another body, with placeholders instead of secrets.
func WithShownBody(ctx context.Context, body string) context.Context {
	return context.WithValue(ctx, uploadKey{}, Call{Body: body, Redacted: true})
}

// RoundTrip passes a request to the API. The answer can be read while the API still writes it.
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := context.WithValue(r.Context(), chi.RouteCtxKey, nil) // the router of the API starts its own context
	in := r.Clone(rest.WithCaller(ctx, t.caller))
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), t.page.RemoteAddr, t.page.Host
	in.Header.Del("Authorization")
	if hops := t.page.Header["X-Forwarded-For"]; hops != nil {
		in.Header["X-Forwarded-For"] = hops
	}
	body, err := t.body(in)
	if err != nil {
		return nil, err
	}
	made, _ := r.Context().Value(uploadKey{}).(Call)
	made.Method, made.Path, made.Body, made.Headers = r.Method, r.URL.RequestURI(), cmp.Or(made.Body, body), neededHeaders(r.Header)
	at := t.note(made)
	from, to := io.Pipe()
	a := &inProcessAnswer{page: t.w, header: http.Header{}, body: to, begun: make(chan struct{})}
	unwatch := context.AfterFunc(r.Context(), func() { _ = from.CloseWithError(context.Cause(r.Context())) }) // stop the API when the page is gone
	go func() {
		defer unwatch()
		defer func() {
			if p := recover(); p != nil { // the API has logged it; cut the answer short
				_ = to.CloseWithError(io.ErrUnexpectedEOF)
			}
			a.WriteHeader(http.StatusInternalServerError) // no effect if the answer has begun
			_ = to.Close()
		}()
		t.api.ServeHTTP(a, in)
		a.WriteHeader(http.StatusOK)
	}()
	<-a.begun
	t.mu.Lock()
	t.made[at].Status = a.status
	t.mu.Unlock()
	answer := &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: from, ContentLength: -1, Request: r,
	}
	if t.caller.Masked {
		masked(answer)
	}
	return answer, nil
}

// body returns a JSON body, to show it, and puts it back. Uploads are not read.
func (t *inProcess) body(r *http.Request) (string, error) {
	if r.Body == nil {
		r.Body = http.NoBody
		return "", nil
	}
	if r.Header.Get("Content-Type") != "application/json" {
		return "@file", nil
	}
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return string(text), err
}

func (t *inProcess) note(c Call) (at int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, c)
	return len(t.made) - 1
}

// forget drops the recorded calls before a stream draws again.
func (t *inProcess) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = nil
}

// calls returns all recorded calls.
func (t *inProcess) calls() []Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Call(nil), t.made...)
}

// Last returns the latest call.
func (t *inProcess) Last() Call {
	made := t.calls()
	if len(made) == 0 {
		return Call{}
	}
	return made[len(made)-1]
}

// StatusOf returns the status of the latest call of a path; 0 if there was none.
func (t *inProcess) StatusOf(path string) int {
	made := t.calls()
	for i := len(made) - 1; i >= 0; i-- {
		if at, _, _ := strings.Cut(made[i].Path, "?"); at == path {
			return made[i].Status
		}
	}
	return 0
}

// Curl returns the call as a shell command with $SENDQUOTA_API_KEY as the key.
func (c Call) Curl(address string) string {
	line := c.Before + "curl -sS "
	if c.Method != http.MethodGet {
		line += "-X " + c.Method + " "
	}
	line += QuoteShell(address+c.Path) + " \\\n  -H \"Authorization: Bearer $SENDQUOTA_API_KEY\""
	for _, header := range c.Headers {
		line += " \\\n  -H " + QuoteShell(header)
	}
	switch {
	case c.Body == "":
	case c.Body[0] == '@' && c.Body != leftOut:
		line += " \\\n  --data-binary " + c.Body
	default:
		line += " \\\n  -d " + QuoteShell(c.Body)
	}
	return line
}

// neededHeaders returns the headers of a call that curl does not send by default.
func neededHeaders(h http.Header) (all []string) {
	for _, name := range []string{"Content-Type", "Accept", "If-Match", "Idempotency-Key"} {
		if v := h.Get(name); v != "" && !strings.HasPrefix(v, "application/json, ") {
			all = append(all, name+": "+v)
		}
	}
	return all
}

// QuoteShell quotes a text for a POSIX shell.
func QuoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// inProcessAnswer is the http.ResponseWriter of a call. Its write deadlines apply to the connection of the page.
type inProcessAnswer struct {
	page   http.ResponseWriter
	header http.Header
	sent   http.Header // the header when the answer began
	status int
	body   *io.PipeWriter
	begun  chan struct{}
}

func (a *inProcessAnswer) Header() http.Header { return a.header }

// WriteHeader begins the answer; only the first one counts.
func (a *inProcessAnswer) WriteHeader(status int) {
	if a.status != 0 || status < 200 {
		return
	}
	a.status, a.sent = status, a.header.Clone()
	close(a.begun)
}

func (a *inProcessAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// FlushError does nothing: written bytes can be read at once.
func (a *inProcessAnswer) FlushError() error { return nil }

// SetReadDeadline does nothing, because the page reads from the browser. A deadline of the call would end the page, or report a
// browser as gone that has sent everything.
func (a *inProcessAnswer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline sets the deadline for a long answer that the page passes on.
func (a *inProcessAnswer) SetWriteDeadline(at time.Time) error {
	return http.NewResponseController(a.page).SetWriteDeadline(at)
}

// EnableFullDuplex allows an answer that begins before the upload ends.
func (a *inProcessAnswer) EnableFullDuplex() error {
	return http.NewResponseController(a.page).EnableFullDuplex()
}
