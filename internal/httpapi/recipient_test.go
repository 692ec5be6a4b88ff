package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestRecipient_InPath has recipients that must be escaped.
func TestRecipient_InPath(t *testing.T) {
	b := setup(t)
	for _, recipient := range []string{"a/b", "a b", "a%2Fb", "ü/%/?#", "+45 12", "a;b=c&d", "..", strings.Repeat("x", 128)} {
		body := strings.Replace(pushBody("R", b.in(time.Hour), ""), "R", recipient, 1)
		b.send("POST", "/v1/pushes", body).must(t, 201)
		for _, escaped := range []string{url.PathEscape(recipient), percent(recipient)} {
			r := b.send("GET", "/v1/recipients/"+escaped+"/quota?at="+b.in(time.Hour), "").must(t, 200)
			if r.at(t, "recipient") != recipient || r.at(t, "rules", 0, "used") != 1.0 {
				t.Errorf("%s: %s", escaped, r.text)
			}
		}
	}
}

func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// TestSlots: rules that block the same stretch share an interval, and a limit of 0 blocks all of time.
func TestSlots(t *testing.T) {
	b := setup(t,
		rule("a", 1, time.Minute), rule("b", 1, time.Minute), rule("never", 0, time.Hour))
	r := b.send("GET", "/v1/recipients/u/slots", "").must(t, 200)
	if got := fmt.Sprint(r.at(t, "blocked")); got != "[map[from:<nil> from_open:true rules:[never] until:<nil> until_open:true]]" {
		t.Errorf("blocked %s", got)
	}
	no := b.send("POST", "/v1/pushes", pushBody("u", b.in(time.Hour), "")).must(t, 409, "quota-exceeded")
	if no.at(t, "next_available_at") != nil || no.at(t, "previous_available_at") != nil || no.at(t, "violations", 0, "rule") != "never" {
		t.Errorf("%s", no.text)
	}
	b = setup(t, rule("a", 1, time.Minute), rule("b", 1, time.Minute), rule("half", 1, 1500*time.Millisecond))
	booked := b.send("POST", "/v1/pushes", pushBody("u", b.in(time.Hour), "")).must(t, 201)
	if booked.at(t, "quota", 2, "window_seconds") != 1.5 {
		t.Errorf("window %s", booked.text)
	}
	r = b.send("GET", "/v1/recipients/u/slots?from="+b.in(0)+"&until="+b.in(2*time.Hour), "").must(t, 200)
	if got := fmt.Sprint(r.at(t, "blocked", 0, "rules"), len(r.at(t, "blocked").([]any))); got != "[a b] 2" {
		t.Errorf("blocked %s", r.text)
	}
}
