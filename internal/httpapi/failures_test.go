package httpapi

import (
	"net/url"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// TestFailures groups what has failed or expired of the tenant's own, and the list has the pushes of a group.
func TestFailures(t *testing.T) {
	b := setup(t)
	for recipient, channel := range map[string]string{"a": "push", "b": "push", "c": "sms", "d": "push", "e": "push"} {
		b.send("POST", "/v1/pushes", `{"recipient":"`+recipient+`","channel":"`+channel+`","message":{},"to":"+4512345678"}`).must(t, 201)
	}
	b.exec(`DELETE FROM live`)
	b.exec(`UPDATE pushes SET status = 'failed', last_error = 'the provider answered 404', possibly_delivered = recipient = 'a', freed = true WHERE recipient IN ('a', 'b', 'c')`)
	b.exec(`UPDATE pushes SET status = 'expired', last_error = 'it expired', freed = true WHERE recipient = 'd'`)
	b.exec(`UPDATE pushes SET status = 'canceled', last_error = 'opted-out', freed = true WHERE recipient = 'e'`)
	got := b.send("GET", "/v1/failures", "").must(t, 200)
	if all := got.at(t, "failures").([]any); len(all) != 3 || got.at(t, "complete") != true {
		t.Fatalf("%s", got.text)
	}
	for member, want := range map[string]any{"status": "failed", "channel": "push", "reason": "the provider answered 404", "pushes": 2.0, "possibly_delivered": 1.0} {
		if v := got.at(t, "failures", 0, member); v != want {
			t.Errorf("%s is %v, want %v", member, v, want)
		}
	}
	if got.at(t, "failures", 1, "reason") != "it expired" || got.at(t, "failures", 2, "channel") != "sms" {
		t.Errorf("%s", got.text)
	}
	if got := b.send("GET", "/v1/failures?channel=sms", "").must(t, 200); len(got.at(t, "failures").([]any)) != 1 {
		t.Errorf("of one channel: %s", got.text)
	}
	if got := b.send("GET", "/v1/failures?until="+url.QueryEscape(rest.Stamp(time.Now().Add(-time.Hour))), "").must(t, 200); len(got.at(t, "failures").([]any)) != 0 {
		t.Errorf("of before: %s", got.text)
	}
	if got := b.send("GET", "/v1/failures", "", "Authorization", "Bearer "+b.other).must(t, 200); len(got.at(t, "failures").([]any)) != 0 {
		t.Errorf("another tenant's: %s", got.text)
	}
	list := "/v1/pushes?status=failed&channel=push&page_size=1&reason=" + url.QueryEscape("the provider answered 404")
	page := b.send("GET", list, "").must(t, 200)
	next := page.at(t, "next_page_token").(string)
	if page = b.send("GET", list+"&page_token="+next, "").must(t, 200); len(page.at(t, "pushes").([]any)) != 1 || page.at(t, "next_page_token") != "" {
		t.Errorf("the second page: %s", page.text)
	}
	b.send("GET", "/v1/pushes?status=failed&channel=push&page_size=1&reason=another&page_token="+next, "").must(t, 422, "invalid-request")
	if got := b.send("GET", "/v1/pushes?reason=another", "").must(t, 200); len(got.at(t, "pushes").([]any)) != 0 {
		t.Errorf("of another reason: %s", got.text)
	}
	b.send("GET", "/v1/failures?from=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z&campaign=x", "").must(t, 422, "invalid-request")
	b.send("GET", "/v1/failures?from=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "").must(t, 422, "invalid-request")
	_, lesser := b.newTenant("lesser", push.ScopeRead)
	b.send("GET", "/v1/failures", "", "Authorization", "Bearer "+lesser).must(t, 403, "forbidden")
}
