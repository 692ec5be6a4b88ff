package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// kinds lists the kinds of a timeline's entries, when there are so many.
func (b *bundle) kinds(recipient, query string, n int) (kinds string, r reply) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r = b.send("GET", "/v1/recipients/"+recipient+"/timeline"+query, "").must(b.t, 200)
		entries := r.at(b.t, "entries").([]any)
		if len(entries) < n && time.Now().Before(deadline) {
			continue // refusals are kept behind the caller's back
		}
		var all []string
		for _, e := range entries {
			all = append(all, e.(map[string]any)["kind"].(string))
		}
		return strings.Join(all, " "), r
	}
}

// TestTimeline: it tells in order what has happened, what was refused as well, and nothing of others.
func TestTimeline(t *testing.T) {
	b := setup(t)
	if kinds, r := b.kinds("aiko", "", 0); kinds != "" || r.at(t, "truncated") != false {
		t.Error(r.text)
	}
	from := b.in(-time.Minute)
	b.send("POST", "/v1/pushes", pushBody("aiko", b.in(0), `,"category":"news"`)).must(t, 201)
	b.attempt("aiko", booking.Finish{Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}})
	b.send("POST", "/v1/pushes", pushBody("aiko", b.in(0), "")).must(t, 409, "quota-exceeded")
	deferred := b.send("POST", "/v1/pushes", pushBody("aiko", b.in(0), `,"on_conflict":"defer"`)).must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("bert", b.in(0), "")).must(t, 201)
	b.send("POST", "/v1/pushes?validate_only=true", pushBody("aiko", b.in(0), "")).must(t, 409, "quota-exceeded")
	b.send("PUT", "/v1/recipients/aiko", `{"opt_outs":{"all":true}}`).must(t, 201)
	b.send("POST", "/v1/pushes/batch", `{"pushes":[{"recipient":"aiko","message":{}}]}`).must(t, 200)

	want := "booked attempt sent refused booked deferred canceled refused"
	kinds, r := b.kinds("aiko", "", 8)
	if kinds != want {
		t.Fatalf("%s: %s", kinds, r.text)
	}
	entries := r.at(t, "entries").([]any)
	entry := func(i int) map[string]any { return entries[i].(map[string]any) }
	if e := entry(4); e["push"] != deferred.at(t, "id") || e["send_at"] != deferred.at(t, "send_at") {
		t.Error(e)
	}
	for i, reason := range map[int]string{1: "delivered", 3: "no place: per-minute", 6: "opted-out", 7: "opted-out"} {
		if entry(i)["reason"] != reason {
			t.Errorf("%v, want the reason %s", entry(i), reason)
		}
	}
	for i := range 8 { // also of a refusal that did not name its time
		if named := entry(i)["send_at"] != nil; named != strings.Contains("booked deferred refused", entry(i)["kind"].(string)) {
			t.Error(entry(i))
		}
	}
	if entry(0)["category"] != "news" || entry(0)["channel"] != "push" || entry(3)["push"] != nil || entry(3)["campaign"] != nil {
		t.Error(r.text)
	}
	if kinds, _ := b.kinds("aiko", "?from="+from+"&until="+b.in(time.Minute), 8); kinds != want {
		t.Error(kinds)
	}
	if kinds, _ := b.kinds("aiko", "?until="+from, 0); kinds != "" {
		t.Error(kinds)
	}
	for _, query := range []string{"?from=" + b.in(time.Hour), "?from=x", "?from=2020-01-01T00:00:00Z", "?a=b"} {
		b.send("GET", "/v1/recipients/aiko/timeline"+query, "").must(t, 422, "invalid-request")
	}

	// The last twenty refusals are kept, and none of an erased recipient.
	for range 25 {
		b.send("POST", "/v1/pushes", pushBody("aiko", b.in(time.Hour), "")).must(t, 409, "opted-out")
	}
	kinds, _ = b.kinds("aiko", "", 26)
	if n := strings.Count(kinds, "refused"); n != 20 {
		t.Errorf("%d refusals", n)
	}
	for key, ttl := range map[string]time.Duration{"sq:*:refused": 7 * 24 * time.Hour} {
		keys := b.rdb.Keys(t.Context(), key).Val()
		if len(keys) != 1 || b.rdb.PTTL(t.Context(), keys[0]).Val() > ttl || b.rdb.PTTL(t.Context(), keys[0]).Val() < ttl-time.Hour {
			t.Error(keys, fmt.Sprint(b.rdb.PTTL(t.Context(), keys[0]).Val()))
		}
	}
	b.send("DELETE", "/v1/recipients/aiko", "").must(t, 200)
	if kinds, _ := b.kinds("aiko", "", 0); kinds != "" {
		t.Error(kinds)
	}
}
