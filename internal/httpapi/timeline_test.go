package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// kinds lists the kinds of a timeline's entries, after it has n of them.
func (b *bundle) kinds(recipient, query string, n int) (kinds string, r reply) {
	b.t.Helper()
	var entries []any
	testenv.Until(b.t, time.Millisecond, fmt.Sprint("the timeline has ", n, " entries"), func() bool { // refusals are kept behind the caller's back
		r = b.send("GET", "/v1/recipients/"+recipient+"/timeline"+query, "").must(b.t, 200)
		entries = r.at(b.t, "entries").([]any)
		return len(entries) >= n
	})
	var all []string
	for _, e := range entries {
		all = append(all, e.(map[string]any)["kind"].(string))
	}
	return strings.Join(all, " "), r
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

// TestTimeline_Deferred: a deferred push stays in the timeline after its end: at its booking, because there was no place when it was
// due, and because an attempt failed.
func TestTimeline_Deferred(t *testing.T) {
	b := setup(t, quota.Rule{Name: "per-second", Limit: 1, Window: time.Second})
	delivered := booking.Finish{Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}}
	due := func(who string) { // a second after its send time
		b.exec(`UPDATE live SET next_at = send_at + interval '1 second' WHERE recipient_key = $1`, push.RecipientKey(b.tenant, who))
		b.exec(`UPDATE pushes SET next_at = send_at + interval '1 second' WHERE status = 'scheduled' AND recipient_key = $1`, push.RecipientKey(b.tenant, who))
	}

	// In the place of the second push is the first.
	at := b.in(-5 * time.Second)
	b.send("POST", "/v1/pushes", pushBody("booked", at, "")).must(t, 201)
	moved := b.send("POST", "/v1/pushes", pushBody("booked", at, `,"on_conflict":"defer"`)).must(t, 201)
	b.attempt("booked", delivered)
	b.attempt("booked", delivered)

	b.send("POST", "/v1/pushes", pushBody("gate", b.in(-10*time.Second), "")).must(t, 201)
	b.attempt("gate", delivered)
	late := b.send("POST", "/v1/pushes", pushBody("gate", b.in(-5*time.Second), "")).must(t, 201).at(t, "id").(string)
	c, err := b.store.Claim(t.Context(), booking.ClaimOrder{
		RecipientKey: push.RecipientKey(b.tenant, "gate"), Lease: time.Minute, Policy: quota.Policy{{Name: "per-hour", Limit: 1, Window: time.Hour}},
	})
	if err != nil || c.Outcome != booking.PutOff {
		t.Fatalf("%+v, %v", c, err)
	}
	next := b.send("GET", "/v1/pushes/"+late, "").must(t, 200).at(t, "next_attempt_at")

	b.send("POST", "/v1/pushes", pushBody("retried", b.in(-5*time.Second), "")).must(t, 201)
	for range 2 {
		b.attempt("retried", booking.Finish{Outcome: push.Refused, Error: "busy", Resolution: push.Resolution{Status: push.Scheduled, Delay: time.Hour, Reason: "busy"}})
		due("retried")
	}
	check := func(who, want string, deferrals ...any) {
		t.Helper()
		kinds, r := b.kinds(who, "", 0)
		var of []any
		for _, e := range r.at(t, "entries").([]any) {
			if e := e.(map[string]any); e["kind"] == "deferred" {
				of = append(of, e["send_at"], e["reason"])
			}
		}
		if kinds != want || len(of) != len(deferrals) {
			t.Fatalf("%s: %s, want %s: %s", who, kinds, want, r.text)
		}
		for i, want := range deferrals {
			if want != any(true) && of[i] != want || of[i] == nil && want != nil {
				t.Errorf("%s: %v, want %v", who, of[i], want)
			}
		}
	}
	check("gate", "booked attempt sent booked deferred", next, "no place when it was due: per-hour")
	check("retried", "booked attempt deferred attempt deferred", nil, "busy", true, "busy")
	due("gate")
	b.attempt("gate", delivered)
	b.attempt("retried", delivered)
	check("gate", "booked attempt sent booked deferred attempt sent", true, "no place when it was due: per-hour")
	check("retried", "booked attempt deferred attempt deferred attempt sent", nil, "busy", true, "busy")
	check("booked", "booked booked deferred attempt sent attempt sent", moved.at(t, "send_at"), true)
}
