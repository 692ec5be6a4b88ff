package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// TestPush_Held: a push that a rule postpones shows the rule, and the beginning and end of the hold: alone, in lists, in the timeline and among
// what waits. A change of the policy, or of the recipient's limits, counts what is due again.
func TestPush_Held(t *testing.T) {
	b := setup(t)
	id := b.due("")
	claim := func() booking.Claim {
		t.Helper()
		c, err := b.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, "anna"), Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if r := b.send("GET", "/v1/pushes/"+id, ""); strings.Contains(r.text, `"held"`) {
		t.Error(r.text)
	}
	const never = `{"rules":[{"name":"never","limit":0,"window":"1m"}]}`
	if r := b.send("PUT", "/v1/policy", never).must(t, 200); r.at(t, "rechecked") != 0.0 {
		t.Error(r.text)
	}
	if c := claim(); c.Outcome != booking.PutOff {
		t.Fatalf("%+v", c)
	}
	one := b.send("GET", "/v1/pushes/"+id, "").must(t, 200)
	for name, held := range map[string]any{"push": one.at(t, "held"), "list": b.send("GET", "/v1/pushes?status=scheduled", "").must(t, 200).at(t, "pushes", 0, "held")} {
		h := held.(map[string]any)
		if h["by"] != "rule" || h["rule"] != "never" || h["since"] == nil || h["until"] != one.at(t, "next_attempt_at") {
			t.Errorf("%s: %v", name, h)
		}
	}
	if _, r := b.kinds("anna", "", 2); r.at(t, "entries", 1, "kind") != "deferred" || r.at(t, "entries", 1, "reason") != "no place when it was due: never" ||
		r.at(t, "entries", 1, "at") != one.at(t, "held", "since") || r.at(t, "entries", 1, "send_at") != one.at(t, "next_attempt_at") {
		t.Error(r.text)
	}
	if r := b.send("GET", "/v1/status", "").must(t, 200); r.at(t, "waiting", "put_off") != 1.0 || r.at(t, "waiting", "pushes") != 0.0 {
		t.Error(r.text)
	}
	changed := b.send("PUT", "/v1/policy", `{"rules":[{"name":"day","limit":1,"window":"24h"}]}`).must(t, 202)
	if changed.at(t, "rechecked") != 1.0 || changed.header.Get("Location") != "/v1/policy/operations/"+changed.at(t, "operation").(string) {
		t.Error(changed.text)
	}
	if r := b.send("GET", changed.header.Get("Location"), "").must(t, 200); r.at(t, "apply") != "new_only" || r.at(t, "status") != "running" || r.at(t, "rechecked") != 0.0 {
		t.Error(r.text)
	}
	if r := b.send("PUT", "/v1/recipients/anna", `{"limits":[{"rule":"day","limit":2}]}`).must(t, 201); r.at(t, "rechecked") != 1.0 {
		t.Error(r.text)
	}
	b.attempt("anna", wasDelivered)
	sent := b.send("GET", "/v1/pushes/"+id, "").must(t, 200)
	if sent.at(t, "held", "rule") != "never" || sent.at(t, "held", "until") == one.at(t, "held", "until") {
		t.Error(sent.text)
	}
	record := b.send("GET", "/v1/sends", "").must(t, 200)
	began, promised := b.time(record.at(t, "sends", 0, "started_at")), b.time(record.at(t, "sends", 0, "send_at"))
	if late := record.at(t, "sends", 0, "late_ms"); late != float64(began.Sub(promised).Milliseconds()) {
		t.Errorf("late by %v ms: %s", late, record.text)
	}
	if text := b.send("GET", "/v1/sends/export", "", "Accept", "text/csv").must(t, 200).text; !strings.Contains(text, ",error,late_ms,segments,page_token") {
		t.Error(text)
	}
}

// time reads a time of an answer.
func (b *bundle) time(v any) time.Time {
	b.t.Helper()
	at, err := time.Parse(time.RFC3339Nano, v.(string))
	if err != nil {
		b.t.Fatal(err)
	}
	return at
}
