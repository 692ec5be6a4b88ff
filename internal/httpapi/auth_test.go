package httpapi

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

func TestAuth_Unauthorized(t *testing.T) {
	b := setup(t)
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Basic " + b.key, b.key, "Bearer wrong", "Bearer " + b.key + "x"} {
		for _, target := range []string{"/v1/pushes", "/v1/quota/check"} {
			// A body that is refused only afterwards.
			r := b.send("POST", target, "{", "Authorization", authorization).must(t, 401, "unauthorized")
			if got := r.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("WWW-Authenticate %q", got)
			}
			if strings.Contains(r.text, b.key) {
				t.Errorf("the key is shown: %s", r.text)
			}
		}
	}
	b.send("GET", "/v1/pushes", "", "Authorization", "bearer  "+b.key).must(t, 200)
}

// TestAuth_Scopes: each operation wants its scope, names it, and takes no other.
func TestAuth_Scopes(t *testing.T) {
	b := setup(t)
	keys := map[string]string{}
	for _, scope := range push.Scopes {
		_, keys[scope] = b.newTenant("only "+scope, scope)
	}
	const id = "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	for _, c := range [][3]string{
		{push.ScopeWrite, "POST", "/v1/pushes"}, {push.ScopeWrite, "POST", "/v1/pushes/batch"}, {push.ScopeWrite, "POST", id + "/cancel"},
		{push.ScopeWrite, "PATCH", id}, {push.ScopeRead, "GET", "/v1/pushes"}, {push.ScopeRead, "GET", id},
		{push.ScopeQuota, "POST", "/v1/quota/check"}, {push.ScopeQuota, "GET", "/v1/recipients/a/quota"}, {push.ScopeQuota, "GET", "/v1/recipients/a/slots"},
		{push.ScopeLimits, "POST", "/v1/limits/take"},
	} {
		for scope, key := range keys {
			r := b.send(c[1], c[2], "", "Authorization", "Bearer "+key)
			if scope == c[0] {
				if r.status == 401 || r.status == 403 {
					t.Errorf("%s %s with %s: %s", c[1], c[2], scope, r.text)
				}
				continue
			}
			r.must(t, 403, "forbidden")
			if !strings.Contains(r.text, c[0]) {
				t.Errorf("the scope is not named: %s", r.text)
			}
		}
	}
}
