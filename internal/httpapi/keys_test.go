package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/accounts"
)

// opens reports whether a key lists pushes.
func (b *bundle) opens(key string) bool {
	b.t.Helper()
	return b.send("GET", "/v1/pushes", "", "Authorization", "Bearer "+key).status == 200
}

// timeAt is the time at a place of an answer.
func (r reply) timeAt(t *testing.T, name string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, r.at(t, name).(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestKeys_Life of one that is made over REST: it is shown once, rotated and revoked.
func TestKeys_Life(t *testing.T) {
	b := setup(t)
	ends := b.in(48 * time.Hour)
	made := b.send("POST", "/v1/keys", `{"name":"back office","scopes":["pushes:read","records:read"],"expires_at":"`+ends+`"}`, "Idempotency-Key", "k").must(t, 201)
	id, secret := made.at(t, "id").(string), made.at(t, "secret").(string)
	path := "/v1/keys/" + id
	if made.header.Get("Location") != path || !strings.HasPrefix(secret, "sq_") || !b.opens(secret) {
		t.Errorf("%s, it opens: %v", made.text, b.opens(secret))
	}
	b.send("GET", "/v1/quota/check", "", "Authorization", "Bearer "+secret).must(t, 405)
	b.send("GET", "/v1/keys", "", "Authorization", "Bearer "+secret).must(t, 403, "forbidden")
	delete(made.body, "secret")
	delete(made.body, "created_at")
	want := map[string]any{"id": id, "name": "back office", "state": "live", "scopes": []any{"pushes:read", "records:read"}, "expires_at": ends, "last_used_at": nil, "revoked_at": nil, "successor": nil}
	if diff := cmp.Diff(want, made.body); diff != "" {
		t.Error(diff)
	}
	// A repetition makes another one: nothing is kept that could be replayed.
	again := b.send("POST", "/v1/keys", `{"name":"back office","scopes":["pushes:read"]}`, "Idempotency-Key", "k").must(t, 201)
	if again.at(t, "id") == id || again.at(t, "expires_at") != nil || query[int](b, `SELECT count(*) FROM idempotency`) != 0 {
		t.Errorf("%s", again.text)
	}

	// Rotated, both live; the new one as long as the old one was made for.
	next := b.send("POST", path+"/rotate", `{"overlap":"1h"}`).must(t, 201)
	second := next.at(t, "secret").(string)
	if next.at(t, "name") != "back office" || !b.opens(secret) || !b.opens(second) || next.header.Get("Location") != "/v1/keys/"+next.at(t, "id").(string) {
		t.Errorf("%s, they open: %v, %v", next.text, b.opens(secret), b.opens(second))
	}
	if next.timeAt(t, "expires_at").Before(made.timeAt(t, "expires_at")) {
		t.Errorf("the new key ends at %s, before the old one's first end %s", next.at(t, "expires_at"), ends)
	}
	old := b.send("GET", path, "").must(t, 200)
	if old.at(t, "successor") != next.at(t, "id") || old.timeAt(t, "expires_at").After(b.now().Add(time.Hour)) {
		t.Errorf("%s", old.text)
	}
	b.send("POST", path+"/rotate", "").must(t, 409, "not-rotatable")

	// A revoked key is refused after it has left the cache, and cannot be rotated.
	for range 2 {
		if r := b.send("DELETE", path, "").must(t, 204); r.text != "" {
			t.Error(r.text)
		}
	}
	b.advance(time.Second)
	if b.opens(secret) || !b.opens(second) {
		t.Errorf("they open: %v, %v", b.opens(secret), b.opens(second))
	}
	if got := b.send("GET", path, "").must(t, 200); got.at(t, "state") != "revoked" || got.at(t, "revoked_at") == nil {
		t.Errorf("%s", got.text)
	}
	b.send("POST", path+"/rotate", "").must(t, 409, "not-rotatable")

	// No secret is anywhere but in the three answers.
	list := b.send("GET", "/v1/keys", "").must(t, 200)
	if len(list.at(t, "keys").([]any)) != 4 || strings.Contains(list.text, "secret") || strings.Contains(list.text, "sq_") {
		t.Errorf("%s", list.text)
	}
	if strings.Contains(b.log.String(), "sq_") {
		t.Error("the log has a key")
	}
}

// TestKeys_RevokedElsewhere: what one process revokes, another one that remembers the key refuses after a second.
func TestKeys_RevokedElsewhere(t *testing.T) {
	b := setup(t)
	elsewhere := New(b.service(b.store, testPolicy()), b.store, Config{RequestTimeout: patience, Now: b.now})
	made := b.send("POST", "/v1/keys", `{"scopes":["pushes:read"]}`).must(t, 201)
	list := func() int {
		return ask(t, elsewhere, "GET", "/v1/pushes", "", "Authorization", "Bearer "+made.at(t, "secret").(string)).status
	}
	if got := list(); got != 200 {
		t.Fatal(got)
	}
	b.send("DELETE", "/v1/keys/"+made.at(t, "id").(string), "").must(t, 204)
	b.advance(time.Second)
	if got := list(); got != 401 {
		t.Errorf("%d", got)
	}
}

// TestKeys_EveryFaultAtOnce of each request.
func TestKeys_EveryFaultAtOnce(t *testing.T) {
	b := setup(t)
	past := b.in(-time.Second)
	for _, row := range []struct {
		method, target, body string
		want                 []string
	}{
		{"POST", "/v1/keys?x=1", `{"scopes":["pushes:read","pushes:sing","pushes:read"],"expires_at":"` + past + `","name":"a\nb","secret":"mine","tenant":"x"}`,
			[]string{"query.x", "body.scopes[1]", "body.scopes", "body.name", "body.secret", "body.tenant", "body.expires_at"}},
		{"POST", "/v1/keys", `{"name":"` + strings.Repeat("n", 101) + `"}`, []string{"body.scopes", "body.name"}},
		{"POST", "/v1/keys", `{"scopes":[],"expires_at":"tomorrow"}`, []string{"body.scopes", "body.expires_at"}},
		{"GET", "/v1/keys?page_size=0&page_token=x&state=live", "", []string{"query.page_size", "query.state"}},
		{"GET", "/v1/keys?page_token=x", "", []string{"query.page_token"}},
		{"GET", "/v1/keys/x?y=1", "", []string{"query.y", "path.id"}},
		{"POST", "/v1/keys/x/rotate?y=1", `{"overlap":"-1s","expires_at":"` + past + `"}`, []string{"query.y", "path.id", "body.overlap", "body.expires_at"}},
		{"POST", "/v1/keys/x/rotate", "", []string{"path.id"}},
		{"DELETE", "/v1/keys/x?self=yes&y=1", `{"z":1}`, []string{"query.self", "query.y", "path.id", "body.z"}},
	} {
		r := b.send(row.method, row.target, row.body).must(t, 422, "invalid-request")
		var got []string
		for _, e := range r.at(t, "errors").([]any) {
			got = append(got, e.(map[string]any)["location"].(string))
		}
		slices.Sort(got)
		slices.Sort(row.want)
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s %s: %s", row.method, row.target, diff)
		}
	}
	if n := query[int](b, `SELECT count(*) FROM api_keys`); n != 1 {
		t.Errorf("%d keys", n)
	}
}

// TestKeys_NoMoreThanOwn: a key hands on what it has, or what that includes, and nothing by rotating a mightier one.
func TestKeys_NoMoreThanOwn(t *testing.T) {
	b := setup(t)
	lesser := func(scopes ...string) []string {
		_, key, err := b.store.CreateKey(t.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return []string{"Authorization", "Bearer " + key}
	}
	writer := lesser(push.ScopeKeysWrite, push.ScopePolicyWrite)
	r := b.send("POST", "/v1/keys", `{"scopes":["pushes:write","policy:read","records:read"]}`, writer...).must(t, 403, "forbidden")
	if detail := r.at(t, "detail").(string); !strings.Contains(detail, "pushes:write, records:read") || r.at(t, "scope") != "pushes:write" {
		t.Errorf("%s", detail)
	}
	made := b.send("POST", "/v1/keys", `{"scopes":["policy:read","keys:read"]}`, writer...).must(t, 201)
	b.send("POST", "/v1/keys/"+b.keyID()+"/rotate", "", writer...).must(t, 403, "forbidden")
	if fresh := b.send("GET", "/v1/keys/"+b.keyID(), "", writer...).must(t, 200); fresh.at(t, "successor") != nil {
		t.Errorf("%s", fresh.text)
	}
	b.send("POST", "/v1/keys/"+made.at(t, "id").(string)+"/rotate", "", writer...).must(t, 201)

	reader := lesser(push.ScopeKeysRead)
	b.send("GET", "/v1/keys", "", reader...).must(t, 200)
	b.send("POST", "/v1/keys", `{"scopes":["keys:read"]}`, reader...).must(t, 403, "forbidden")
	b.send("DELETE", "/v1/keys/"+b.keyID(), "", reader...).must(t, 403, "forbidden")
	// It also ends only such keys, so that it cannot lock others out.
	r = b.send("DELETE", "/v1/keys/"+b.keyID(), "", writer...).must(t, 403, "forbidden")
	if still := b.send("GET", "/v1/keys/"+b.keyID(), "").must(t, 200); still.at(t, "state") != "live" || r.at(t, "scope") != "pushes:write" {
		t.Errorf("%s %s", r.text, still.text)
	}
	b.send("DELETE", "/v1/keys/"+made.at(t, "id").(string), "", writer...).must(t, 204)
}

// TestKeys_NoLaterThanOwn: what a key with an end makes, also in its own place, ends with it at the latest.
func TestKeys_NoLaterThanOwn(t *testing.T) {
	b := setup(t)
	ends := b.in(time.Hour)
	maker := b.send("POST", "/v1/keys", `{"scopes":["keys:write"],"expires_at":"`+ends+`"}`).must(t, 201)
	asMaker := []string{"Authorization", "Bearer " + maker.at(t, "secret").(string)}
	later := b.send("POST", "/v1/keys", `{"scopes":["keys:read"],"expires_at":"`+b.in(2*time.Hour)+`"}`, asMaker...).must(t, 422, "invalid-request")
	if at := later.at(t, "errors", 0, "location"); at != "body.expires_at" || !strings.Contains(later.text, ends) {
		t.Errorf("%s", later.text)
	}
	earlier := b.in(time.Minute)
	for body, want := range map[string]string{
		`{"scopes":["keys:read"]}`:                                ends,
		`{"scopes":["keys:read"],"expires_at":"` + ends + `"}`:    ends,
		`{"scopes":["keys:read"],"expires_at":"` + earlier + `"}`: earlier,
	} {
		if made := b.send("POST", "/v1/keys", body, asMaker...).must(t, 201); made.at(t, "expires_at") != want {
			t.Errorf("%s: %s, want %s", body, made.text, want)
		}
	}
	endless := b.send("POST", "/v1/keys", `{"scopes":["keys:write"]}`).must(t, 201)
	for _, id := range []any{endless.at(t, "id"), maker.at(t, "id")} {
		if next := b.send("POST", "/v1/keys/"+id.(string)+"/rotate", "", asMaker...).must(t, 201); next.at(t, "expires_at") != ends {
			t.Errorf("%s", next.text)
		}
	}
}

// TestKeys_RevokeSelf only if that is said.
func TestKeys_RevokeSelf(t *testing.T) {
	b := setup(t)
	own := "/v1/keys/" + b.keyID()
	b.send("DELETE", own, "").must(t, 409, "own-key")
	b.send("DELETE", own+"?self=false", "").must(t, 409, "own-key")
	b.advance(time.Second)
	b.send("DELETE", own+"?self=true", "").must(t, 204)
	b.advance(time.Second)
	b.send("GET", own, "").must(t, 401, "unauthorized")
}

// TestKeys_MaxPerTenant bounds the live ones: a rotation is never in its way, and the keys of others do not count.
func TestKeys_MaxPerTenant(t *testing.T) {
	b := setup(t)
	var paths []string
	for range 5 { // one is there
		paths = append(paths, b.send("POST", "/v1/keys", `{"scopes":["pushes:read"]}`).must(t, 201).header.Get("Location"))
	}
	b.send("POST", "/v1/keys", `{"scopes":["pushes:read"]}`).must(t, 409, "too-many-keys")
	b.send("POST", paths[0]+"/rotate", `{"overlap":"0s"}`).must(t, 201)
	b.send("POST", "/v1/keys", `{"scopes":["pushes:read"]}`).must(t, 409, "too-many-keys")
	b.send("DELETE", paths[1], "").must(t, 204)
	b.send("POST", "/v1/keys", `{"scopes":["pushes:read"]}`).must(t, 201)
	b.send("POST", "/v1/keys", `{"scopes":["pushes:read"]}`, "Authorization", "Bearer "+b.other).must(t, 201)
}

// TestKeys_Pages lists each key once, the oldest first.
func TestKeys_Pages(t *testing.T) {
	b := setup(t)
	want := []string{b.keyID()}
	for i := range 5 {
		want = append(want, b.send("POST", "/v1/keys", fmt.Sprintf(`{"name":"n%d","scopes":["pushes:read"]}`, i)).must(t, 201).at(t, "id").(string))
	}
	var got []string
	for token := ""; ; {
		page := b.send("GET", "/v1/keys?page_size=2&page_token="+token, "").must(t, 200)
		for _, k := range page.at(t, "keys").([]any) {
			got = append(got, k.(map[string]any)["id"].(string))
		}
		if token = page.at(t, "next_page_token").(string); token == "" {
			break
		}
		b.send("GET", "/v1/keys?page_token="+token, "", "Authorization", "Bearer "+b.other).must(t, 422, "invalid-request")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestKeys_OfOthers do not exist.
func TestKeys_OfOthers(t *testing.T) {
	b := setup(t)
	theirs := []string{"Authorization", "Bearer " + b.other}
	for _, row := range [][2]string{{"GET", ""}, {"POST", "/rotate"}, {"DELETE", ""}} {
		b.send(row[0], "/v1/keys/"+b.keyID()+row[1], "", theirs...).must(t, 404, "not-found")
	}
	if list := b.send("GET", "/v1/keys", "", theirs...).must(t, 200); strings.Contains(list.text, b.keyID()) || len(list.at(t, "keys").([]any)) != 1 {
		t.Errorf("%s", list.text)
	}
	if _, err := b.store.Key(t.Context(), accounts.HashKey(b.key)); err != nil {
		t.Error(err)
	}
}
