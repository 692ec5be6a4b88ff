package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// TestWithCaller: a caller whom the program knows needs no key, but the scope; the log names the user.
func TestWithCaller(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user := push.Caller{Tenant: b.tenant, User: uuid.New(), Scopes: []string{push.ScopeRead}}
	serve := func(method, target string) (int, string) {
		r := httptest.NewRequestWithContext(rest.WithCaller(t.Context(), user), method, target, nil)
		rec := httptest.NewRecorder()
		b.api.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	if code, body := serve(http.MethodGet, "/v1/pushes"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := serve(http.MethodGet, "/v1/keys"); code != 403 || !strings.Contains(body, "your role lacks the scope keys:read") {
		t.Errorf("%d %s", code, body)
	}
	if text := b.log.String(); !strings.Contains(text, `"user":"`+user.User.String()) || strings.Contains(text, `"key":"`) {
		t.Errorf("the log does not name the user alone: %s", text)
	}
}
