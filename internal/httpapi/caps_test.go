package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/accounts"
)

// TestCaps as the API tells them: alone, in a batch, in a move and in a rehearsal.
func TestCaps(t *testing.T) {
	b := setup(t)
	allow := func(pending, recipients int) {
		t.Helper()
		if _, err := b.store.CapTenant(t.Context(), b.name, accounts.CapChange{
			PendingPushes: &accounts.NewCap{Value: &pending}, RecipientsPerDay: &accounts.NewCap{Value: &recipients},
		}); err != nil {
			t.Fatal(err)
		}
		b.advance(time.Second) // what is known of the key is asked again
	}
	noon := b.now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	at := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }

	allow(2, 0)
	b.send("POST", "/v1/pushes", pushBody("a", at(0), "")).must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("b", at(0), ""), "Idempotency-Key", "b").must(t, 201)
	for _, path := range []string{"/v1/pushes", "/v1/pushes?validate_only=true"} {
		r := b.send("POST", path, pushBody("c", at(0), "")).must(t, 409, "tenant-cap-exceeded")
		if got := fmt.Sprint(r.at(t, "cap"), " ", r.at(t, "limit"), " ", r.at(t, "used")); got != "pending_pushes 2 2" || r.body["day"] != nil {
			t.Errorf("%s: %s", got, r.text)
		}
		if detail := r.at(t, "detail").(string); !strings.Contains(detail, "limit 2, used 2") || !strings.Contains(detail, "cancel others") {
			t.Errorf("detail %q", detail)
		}
	}
	b.send("POST", "/v1/pushes", pushBody("b", at(0), ""), "Idempotency-Key", "b").must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("c", at(0), ""), "Authorization", "Bearer "+b.other).must(t, 201)

	allow(3, 0)
	members := `{"pushes":[` + pushBody("c", at(0), "") + `,` + pushBody("d", at(0), "") + `]`
	r := b.send("POST", "/v1/pushes/batch", members+`,"atomic":true}`).must(t, 409, "tenant-cap-exceeded")
	if r.at(t, "results", 0, "problem", "type") != "urn:sendquota:problem:batch-refused" || r.at(t, "results", 1, "problem", "cap") != "pending_pushes" {
		t.Errorf("atomic batch: %s", r.text)
	}
	r = b.send("POST", "/v1/pushes/batch", members+`}`).must(t, 200)
	if r.at(t, "results", 0, "status") != 201.0 || r.at(t, "results", 1, "status") != 409.0 || r.at(t, "results", 1, "problem", "used") != 3.0 {
		t.Errorf("batch: %s", r.text)
	}

	allow(1, 0)
	r = b.send("POST", "/v1/pushes", pushBody("d", at(0), "")).must(t, 409, "tenant-cap-exceeded")
	if detail := r.at(t, "detail").(string); !strings.Contains(detail, "limit 1, used 2 or more") {
		t.Errorf("under a cap that was lowered: %q", detail)
	}

	allow(0, 3)
	r = b.send("POST", "/v1/pushes", pushBody("d", at(time.Hour), "")).must(t, 409, "tenant-cap-exceeded")
	if got := fmt.Sprint(r.at(t, "cap"), " ", r.at(t, "limit"), " ", r.at(t, "used"), " ", r.at(t, "day")); got != "recipients_per_day 3 3 "+noon.Format(time.DateOnly) {
		t.Errorf("%s: %s", got, r.text)
	}
	b.send("POST", "/v1/pushes", pushBody("a", at(time.Hour), "")).must(t, 201)
	other := b.send("POST", "/v1/pushes", pushBody("d", at(24*time.Hour), "")).must(t, 201).at(t, "id").(string)
	b.send("PATCH", "/v1/pushes/"+other, `{"send_at":"`+at(time.Hour)+`"}`).must(t, 409, "tenant-cap-exceeded").at(t, "day")
	b.send("PATCH", "/v1/pushes/"+other, `{"send_at":"`+at(25*time.Hour)+`"}`).must(t, 200)
}

// TestCaps_Usage: the answer has the tenant's own caps and their use.
func TestCaps_Usage(t *testing.T) {
	b := setup(t)
	noon := b.now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	day := noon.Format(time.DateOnly)
	for _, ahead := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		b.send("POST", "/v1/pushes", pushBody("anna", noon.Add(ahead).Format(time.RFC3339), "")).must(t, 201)
	}
	b.send("POST", "/v1/pushes", pushBody("bert", noon.Format(time.RFC3339), "")).must(t, 201)
	is := func(query, key, want string) {
		t.Helper()
		r := b.send("GET", "/v1/caps"+query, "", "Authorization", "Bearer "+key).must(t, 200)
		got := ""
		for _, name := range []string{"pending_pushes", "recipients_per_day"} {
			got += fmt.Sprint(r.at(t, name, "used"), " of ", r.body[name].(map[string]any)["limit"], " ", r.at(t, name, "complete"), "; ")
		}
		if got += fmt.Sprint(r.at(t, "day")); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	is("?day="+day, b.key, "4 of <nil> true; 2 of <nil> true; "+day)
	is("", b.key, "4 of <nil> true; 0 of <nil> true; "+b.now().UTC().Format(time.DateOnly))
	is("?day="+day, b.other, "0 of <nil> true; 0 of <nil> true; "+day)
	if _, err := b.store.CapTenant(t.Context(), b.name, accounts.CapChange{
		PendingPushes: &accounts.NewCap{Value: new(3)}, RecipientsPerDay: &accounts.NewCap{Value: new(5)},
	}); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Second) // what is known of the key is asked again
	is("?day="+day, b.key, "4 of 3 true; 2 of 5 true; "+day)
	b.send("GET", "/v1/caps?day=2026-13-01&x=1", "").must(t, 422, "invalid-request")
	_, lesser := b.newTenant("lesser", push.ScopeQuota)
	b.send("GET", "/v1/caps", "", "Authorization", "Bearer "+lesser).must(t, 403, "forbidden")
}
