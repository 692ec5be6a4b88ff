package app

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestNeighbours_Templates: every operation that parses or renders a tenant's templates needs one of the tenant's turns at computing, so
// that hostile templates keep only a part of the processors busy.
func TestNeighbours_Templates(t *testing.T) {
	t.Parallel()
	n := setupNeighbours(t, testenv.Redis(t))
	ask := func(ctx context.Context, key, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+key)
		if r.Header.Set("Content-Type", "application/json"); strings.HasSuffix(path, "/audience") {
			r.Header.Set("Content-Type", "text/csv")
		}
		rec := httptest.NewRecorder()
		n.api.ServeHTTP(rec, r)
		return rec
	}
	const hostile = `{"message":{"body":"{% for i in (1..1000000000) %}{% endfor %}"}}`
	draft := func(key string) string {
		var made struct{ ID string }
		if rec := ask(t.Context(), key, "POST", "/v1/campaigns", hostile); rec.Code != 201 || json.Unmarshal(rec.Body.Bytes(), &made) != nil {
			t.Fatal(rec.Body)
		}
		if rec := ask(t.Context(), key, "PUT", "/v1/campaigns/"+made.ID+"/audience", "recipient\nanna\nbert\n"); rec.Code != 200 {
			t.Fatal(rec.Body)
		}
		return "/v1/campaigns/" + made.ID
	}
	loud, calm := draft(n.loud), draft(n.calm)
	work := []struct {
		name, method, path, body string
		status                   int
	}{
		{"create", "POST", "/v1/campaigns", hostile, 201},
		{"create, with other faults", "POST", "/v1/campaigns", strings.Replace(hostile, "{", `{"name":1,`, 1), 422},
		{"change", "PATCH", "", hostile, 200},
		{"preview", "POST", "/preview", "", 200},
		{"simulate", "POST", "/simulate", "", 200},
		{"push", "POST", "/v1/pushes?validate_only=true", strings.Replace(hostile, "{", `{"recipient":"anna","template":true,`, 1), 422},
	}
	// moved is the path of a push that was booked for one day, and moved to another, with the day in its message.
	booked, later := time.Now().UTC().Truncate(time.Second).AddDate(0, 0, 1), time.Now().UTC().Truncate(time.Second).AddDate(0, 0, 2)
	moved := func(key string) string {
		var made struct{ ID string }
		rec := ask(t.Context(), key, "POST", "/v1/pushes", `{"recipient":"bert","template":true,"message":{"body":"{{ 'now' | date: '%F' }}"},"send_at":"`+booked.Format(time.RFC3339)+`"}`)
		if rec.Code != 201 || json.Unmarshal(rec.Body.Bytes(), &made) != nil {
			t.Fatal(rec.Body)
		}
		if rec := ask(t.Context(), key, "PATCH", "/v1/pushes/"+made.ID, `{"send_at":"`+later.Format(time.RFC3339)+`"}`); rec.Code != 200 {
			t.Fatal(rec.Body)
		}
		return "/v1/pushes/" + made.ID
	}
	loudPush, calmPush := moved(n.loud), moved(n.calm)
	path := func(of, path string) string {
		if strings.HasPrefix(path, "/v1") {
			return path
		}
		return of + path
	}

	// All turns of the loud tenant are taken.
	testenv.Check(t, n.app.computing.Do(t.Context(), n.loudID, func() error { return nil })) // it is the last that was seen
	testenv.Until(t, 10*time.Millisecond, "the tenants rest", func() bool { return !n.app.neighbours.Several() })
	leave := make(chan struct{})
	defer close(leave)
	for range runtime.GOMAXPROCS(0) {
		in := make(chan struct{})
		go func() {
			_ = n.app.computing.Do(context.Background(), n.loudID, func() error { close(in); <-leave; return nil })
		}()
		<-in
	}
	for _, w := range work {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if rec := ask(ctx, n.loud, w.method, path(loud, w.path), w.body); rec.Code != 429 && rec.Code != 503 {
			t.Errorf("%s without a turn: %d %s", w.name, rec.Code, rec.Body)
		}
		cancel()
		if rec := ask(t.Context(), n.calm, w.method, path(calm, w.path), w.body); rec.Code != w.status {
			t.Errorf("%s beside it: %d %s", w.name, rec.Code, rec.Body)
		}
	}
	// A push is shown without a turn, with its message as it was booked; only rendering it again needs a turn.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if rec := ask(ctx, n.loud, "GET", loudPush, ""); rec.Code == 200 && !strings.Contains(rec.Body.String(), booked.Format(`"body":"2006-01-02"`)) {
		t.Errorf("a message was made without a turn: %s", rec.Body)
	}
	if rec := ask(t.Context(), n.calm, "GET", calmPush, ""); !strings.Contains(rec.Body.String(), later.Format(`"body":"2006-01-02"`)) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := n.post(n.calm, "/v1/pushes", `{"recipient":"anna","message":{"body":"Hello."}}`); rec.Code != 201 {
		t.Errorf("submit beside it: %d %s", rec.Code, rec.Body)
	}
}
