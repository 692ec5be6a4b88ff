package console

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/user"
)

// neighbours are users of two tenants: a request tells whose it is.
type neighbours struct{ signedIn }

func (n *neighbours) SignedIn(r *http.Request) (frame.Visitor, bool) {
	who := n.Visitor
	if r.Header.Get("X-Neighbour") != "" {
		who.Caller.Tenant = uuid.MustParse(r.Header.Get("X-Neighbour"))
	}
	return who, true
}

// unfinished is the body of a form that never arrives. It reports when it is read.
type unfinished struct {
	reading chan<- struct{}
	end     <-chan struct{}
	once    sync.Once
}

func (u *unfinished) Read([]byte) (int, error) {
	u.once.Do(func() { u.reading <- struct{}{} })
	<-u.end
	return 0, io.ErrUnexpectedEOF
}

// TestForms_Memory: the forms of a tenant that do not come take its part of the memory and no more, leave another tenant's alone, and are
// refused beyond it before they are read.
func TestForms_Memory(t *testing.T) {
	t.Parallel()
	const size, fit, copies = 60_000, 4, 4
	b := setup(t)
	who := &neighbours{*b.who}
	who.Visitor.Role, who.Visitor.Caller.Scopes = "viewer", user.Viewer.Scopes()
	console := New(b.handler, who, frame.Config{FormMemory: 2 * (fit*copies*size + size)})
	reading, end := make(chan struct{}, 100), make(chan struct{})
	send := func(ctx context.Context, path, kind, neighbour string, length int64, body io.Reader) int {
		r := httptest.NewRequestWithContext(ctx, "POST", path, body)
		r.Header.Set("Content-Type", kind)
		r.Header.Set("X-Neighbour", neighbour)
		r.ContentLength = length
		w := httptest.NewRecorder()
		console.ServeHTTP(w, r)
		return w.Code
	}
	const path, urlencoded = "/console/campaigns/x/audience/bad-lines", "application/x-www-form-urlencoded"
	var open sync.WaitGroup
	ctx, leave := context.WithCancel(t.Context())
	for range 50 {
		open.Go(func() { send(ctx, path, urlencoded, "", size, &unfinished{reading: reading, end: end}) })
	}
	for range fit {
		<-reading
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := send(gone, path, urlencoded, "", size, strings.NewReader("line=1")); got != http.StatusTooManyRequests {
		t.Errorf("beyond its part: %d", got)
	}
	if got := send(t.Context(), path, urlencoded, uuid.NewString(), 6, strings.NewReader("line=1")); got != http.StatusOK {
		t.Errorf("another tenant: %d", got)
	}
	leave() // those that wait
	if n := len(reading); n != 0 {
		t.Errorf("%d more than %d are read", n, fit)
	}
	close(end)
	open.Wait()
	testenv.Until(t, time.Millisecond, "the memory is free again", func() bool {
		return send(gone, path, urlencoded, "", 6, strings.NewReader("line=1")) == http.StatusOK
	})
	if got := send(t.Context(), "/console/settings/sessions", urlencoded, "", 64<<10+1, &unfinished{}); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a form without a message of more than 64 KiB: %d", got)
	}
}

// endless counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.read += len(b)
	return len(b), nil
}

// TestForms_LongHead: the header of a part of an upload is bounded.
func TestForms_LongHead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.who.Visitor.Caller.Scopes = append(user.Editor.Scopes(), push.ScopeCampaignsDraft)
	rest := &endless{}
	r := httptest.NewRequestWithContext(t.Context(), "POST", b.draftPath()+"/audience/columns", io.MultiReader(strings.NewReader("--b\r\nX-Long: "), rest))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	b.send(r).has(t, 413, "The header of a part of the form is too long")
	if rest.read > 2*16<<10 {
		t.Errorf("%d bytes of it were read", rest.read)
	}
}
