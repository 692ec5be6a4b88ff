package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

func TestUnauthorized(t *testing.T) {
	w := newWorld(t)
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Basic " + w.key, w.key, "Bearer wrong", "Bearer " + w.key + "x"} {
		for _, target := range []string{"/v1/pushes", "/v1/quota/check"} {
			// A body that is refused only afterwards.
			r := w.send("POST", target, "{", "Authorization", authorization).must(t, 401, "unauthorized")
			if got := r.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("WWW-Authenticate %q", got)
			}
			if strings.Contains(r.text, w.key) {
				t.Errorf("the key is shown: %s", r.text)
			}
		}
	}
	w.send("GET", "/v1/pushes", "", "Authorization", "bearer  "+w.key).must(t, 200)
}

// TestScopes: each operation wants its scope, names it, and takes no other.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	keys := map[string]string{}
	for _, scope := range push.Scopes {
		_, keys[scope] = w.newTenant("only "+scope, scope)
	}
	const id = "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	for _, c := range [][3]string{
		{push.ScopeWrite, "POST", "/v1/pushes"}, {push.ScopeWrite, "POST", "/v1/pushes/batch"}, {push.ScopeWrite, "POST", id + "/cancel"},
		{push.ScopeWrite, "PATCH", id}, {push.ScopeRead, "GET", "/v1/pushes"}, {push.ScopeRead, "GET", id},
		{push.ScopeQuota, "POST", "/v1/quota/check"}, {push.ScopeQuota, "GET", "/v1/recipients/a/quota"}, {push.ScopeQuota, "GET", "/v1/recipients/a/slots"},
		{push.ScopeLimits, "POST", "/v1/limits/take"},
	} {
		for scope, key := range keys {
			r := w.send(c[1], c[2], "", "Authorization", "Bearer "+key)
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

// counting is an authenticator that knows keys by their hash.
type counting struct {
	known map[[32]byte]push.Caller
	asked int
	err   error
}

func (c *counting) Key(_ context.Context, hash [32]byte) (push.Caller, error) {
	c.asked++
	if c.err != nil {
		return push.Caller{}, c.err
	}
	caller, ok := c.known[hash]
	if !ok {
		return caller, push.ErrNotFound
	}
	return caller, nil
}

func TestKeyringRemembers(t *testing.T) {
	now := time.Now()
	good, bad := [32]byte{1}, [32]byte{2}
	c := &counting{known: map[[32]byte]push.Caller{good: {Scopes: []string{"s"}}}}
	k := newKeyring(c, func() time.Time { return now })
	find := func(hash [32]byte, wantErr error, wantAsked int) {
		t.Helper()
		if _, err := k.find(t.Context(), hash); !errors.Is(err, wantErr) || c.asked != wantAsked {
			t.Errorf("error %v after %d questions, want %v after %d", err, c.asked, wantErr, wantAsked)
		}
	}
	find(good, nil, 1)
	find(bad, push.ErrNotFound, 2)
	now = now.Add(999 * time.Millisecond)
	find(bad, push.ErrNotFound, 2)
	now = now.Add(time.Millisecond)
	find(bad, push.ErrNotFound, 3)
	now = now.Add(8999 * time.Millisecond)
	find(good, nil, 3)
	now = now.Add(time.Millisecond)
	delete(c.known, good)
	find(good, push.ErrNotFound, 4)

	// Failures are not remembered.
	c.err = push.ErrUnavailable
	now = now.Add(time.Hour)
	find(good, push.ErrUnavailable, 5)
	find(good, push.ErrUnavailable, 6)
}

// TestKeyringIsBounded: guesses neither fill the memory nor drive out a key.
func TestKeyringIsBounded(t *testing.T) {
	now := time.Now()
	good := [32]byte{1}
	c := &counting{known: map[[32]byte]push.Caller{good: {}}}
	k := newKeyring(c, func() time.Time { return now })
	if _, err := k.find(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for i := range 2*maxRemember + 50 {
		_, _ = k.find(t.Context(), [32]byte([]byte(fmt.Sprintf("%032d", i))))
	}
	if len(k.unknown) > maxRemember || len(k.unknown) < maxRemember/2 {
		t.Errorf("%d guesses are remembered", len(k.unknown))
	}
	asked := c.asked
	if _, err := k.find(t.Context(), good); err != nil || c.asked != asked {
		t.Errorf("the good key was driven out: %v", err)
	}
	now = now.Add(time.Minute)
	_, _ = k.find(t.Context(), [32]byte{3})
	if len(k.unknown) > maxRemember {
		t.Errorf("%d guesses are remembered", len(k.unknown))
	}
}
