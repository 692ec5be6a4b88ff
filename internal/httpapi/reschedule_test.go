package httpapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// marks returns the traces of a change of a push: rows, events and stat deltas.
func (b *bundle) marks() string {
	b.t.Helper()
	return query[string](b, `
		SELECT json_build_array(
			(SELECT json_agg(p ORDER BY id) FROM pushes p), (SELECT json_agg(l ORDER BY push_id) FROM live l),
			(SELECT count(*) FROM webhook_deliveries), (SELECT sum(abs(n)) FROM stat_deltas))::text`)
}

// TestReschedule_ValidateOnly: the answer is the answer of the real move, and nothing moves.
func TestReschedule_ValidateOnly(t *testing.T) {
	b := setup(t)
	b.send("POST", "/v1/webhooks", `{"url":"https://example.com/","events":["push.scheduled"]}`).must(t, 201)
	noon := b.now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	at := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }
	id := b.send("POST", "/v1/pushes", pushBody("anna", at(0), "")).must(t, 201).at(t, "id").(string)
	b.send("POST", "/v1/pushes", pushBody("anna", at(time.Hour), "")).must(t, 201)
	gone := b.send("POST", "/v1/pushes", pushBody("anna", at(2*time.Hour), "")).must(t, 201).at(t, "id").(string)
	b.send("POST", "/v1/pushes/"+gone+"/cancel", "").must(t, 200)
	path, ask, before := "/v1/pushes/"+id, "?validate_only=true", b.marks()

	for _, row := range []struct {
		name, path, body string
		status           int
		problem          string
	}{
		{"a full time", path, `{"send_at":"` + at(time.Hour+30*time.Second) + `"}`, 409, "quota-exceeded"},
		{"a push that has ended", "/v1/pushes/" + gone, `{"send_at":"` + at(3*time.Hour) + `"}`, 409, "not-reschedulable"},
		{"a fault", path, `{"send_at":"tomorrow","x":1}`, 422, "invalid-request"},
		{"no such push", "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", `{"send_at":"` + at(3*time.Hour) + `"}`, 404, "not-found"},
		{"a free time", path, `{"send_at":"` + at(3*time.Hour) + `"}`, 200, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := b.send("PATCH", row.path+ask, row.body).must(t, row.status)
			if diff := cmp.Diff(before, b.marks()); diff != "" {
				t.Errorf("a question changed\n%s", diff)
			}
			live := b.send("PATCH", row.path, row.body).must(t, row.status)
			if row.problem != "" {
				live.must(t, row.status, row.problem)
			}
			for _, answer := range []reply{asked, live} {
				delete(answer.body, "updated_at")
			}
			if diff := cmp.Diff(live.body, asked.body); diff != "" {
				t.Errorf("the live call answers otherwise:\n%s", diff)
			}
		})
	}
	if b.marks() == before {
		t.Error("the live calls moved nothing")
	}
	b.send("PATCH", path+ask, `{"send_at":"`+at(4*time.Hour)+`"}`, "Authorization", "Bearer "+b.other).must(t, 404, "not-found")
	wrong := b.send("PATCH", path+"?validate_only=yes&dry=1", `{"send_at":"tomorrow"}`).must(t, 422, "invalid-request")
	if n := len(wrong.at(t, "errors").([]any)); n != 3 {
		t.Errorf("%d faults: %s", n, wrong.text)
	}
}
