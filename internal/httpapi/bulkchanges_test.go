package httpapi

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/push"
)

// bulkWorker does all that there is to do for bulk changes.
func (b *bundle) bulkWorker() {
	b.t.Helper()
	l := bulk.NewRunner(b.store, b.service(b.store, testPolicy()), slog.New(slog.DiscardHandler))
	for full := true; full; {
		var err error
		if full, err = l.Pass(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestBulkChange goes the way of a move with a refusal.
func TestBulkChange(t *testing.T) {
	b := setup(t)
	for i, who := range []string{"anna", "bo"} {
		b.send("POST", "/v1/pushes", pushBody(who, b.in(48*time.Hour+time.Duration(i)*time.Second), `,"category":"c"`)).must(t, 201)
	}
	b.send("POST", "/v1/pushes", pushBody("anna", b.in(49*time.Hour), "")).must(t, 201) // in the way
	body := `{"action":"move","shift":"1h","filter":{"category":"c"}}`

	asked := b.send("POST", "/v1/bulk-changes?validate_only=true", body).must(t, 200)
	if diff := cmp.Diff(map[string]any{"pushes": 2.0, "accepted": 1.0, "refused": 1.0}, asked.at(t, "sample")); diff != "" || asked.at(t, "found") != 2.0 {
		t.Errorf("%s: %s", diff, asked.text)
	}
	if all := b.send("GET", "/v1/bulk-changes", "").at(t, "bulk_changes").([]any); len(all) != 0 {
		t.Errorf("a question has made %v", all)
	}
	made := b.send("POST", "/v1/bulk-changes", body, "Idempotency-Key", "k").must(t, 202)
	path := "/v1/bulk-changes/" + made.at(t, "id").(string)
	if made.header.Get("Location") != path || made.at(t, "status") != "running" || made.at(t, "shift") != "1h0m0s" {
		t.Errorf("%v %s", made.header, made.text)
	}
	b.bulkWorker()
	again := b.send("POST", "/v1/bulk-changes", body, "Idempotency-Key", "k").must(t, 202)
	if again.header.Get("Idempotency-Replayed") != "true" || again.at(t, "id") != made.at(t, "id") {
		t.Errorf("%v %s", again.header, again.text)
	}
	b.send("POST", "/v1/bulk-changes", `{"action":"cancel","filter":{"category":"c"}}`, "Idempotency-Key", "k").must(t, 422, "idempotency-key-reused")
	done := b.send("GET", path, "").must(t, 200)
	for name, want := range map[string]any{"status": "done", "found": 2.0, "changed": 1.0, "refused": 1.0, "pending": 0.0, "gave_up": 0.0, "refused_by_reason": map[string]any{"quota-exceeded": 1.0}} {
		if diff := cmp.Diff(want, done.at(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	moves := b.logged("action=push.move")
	if len(moves) != 1 {
		t.Fatalf("moves in the audit log: %v", moves)
	}
	if diff := cmp.Diff(map[string]any{"type": "key", "id": b.keyID(), "name": nil}, moves[0].(map[string]any)["actor"]); diff != "" {
		t.Errorf("who has asked for it did not move the push: %s", diff)
	}
	if refused := b.send("GET", path+"/refused", "").must(t, 200).at(t, "refused").([]any); len(refused) != 1 {
		t.Errorf("refused: %v", refused)
	}

	// Other tenants do not see it.
	auth := []string{"Authorization", "Bearer " + b.other}
	for _, target := range []string{"GET " + path, "GET " + path + "/refused", "POST " + path + "/cancel"} {
		var method, where string
		_, _ = fmt.Sscan(target, &method, &where)
		b.send(method, where, "", auth...).must(t, 404, "not-found")
	}
	if all := b.send("GET", "/v1/bulk-changes", "", auth...).at(t, "bulk_changes").([]any); len(all) != 0 {
		t.Errorf("another tenant sees %v", all)
	}
}

// TestBulkChange_Scopes: reading wants pushes:read, and changing pushes:write.
func TestBulkChange_Scopes(t *testing.T) {
	b := setup(t)
	_, reads := b.newTenant("reads", push.ScopeRead)
	_, neither := b.newTenant("neither", push.ScopeQuota)
	b.send("GET", "/v1/bulk-changes", "", "Authorization", "Bearer "+reads).must(t, 200)
	b.send("POST", "/v1/bulk-changes", `{"action":"cancel","all":true}`, "Authorization", "Bearer "+reads).must(t, 403, "forbidden")
	b.send("GET", "/v1/bulk-changes", "", "Authorization", "Bearer "+neither).must(t, 403, "forbidden")
}

// TestBulkChange_Invalid: the answer lists every error, and nothing is created.
func TestBulkChange_Invalid(t *testing.T) {
	b := setup(t)
	for body, want := range map[string]int{
		`{"action":"cancel"}`:                                                     1,
		`{"action":"cancel","filter":{}}`:                                         1,
		`{"action":"cancel","filter":{},"all":false}`:                             1,
		`{"action":"cancel","all":true,"shift":"1h"}`:                             1,
		`{"action":"move","all":true}`:                                            1,
		`{"action":"move","all":true,"shift":null}`:                               1,
		`{"action":"move","all":true,"shift":"0s"}`:                               1,
		`{"action":"move","all":true,"shift":"1500ms"}`:                           1,
		`{"action":"move","all":true,"shift":"-9000h"}`:                           1,
		`{"action":"cancel","all":true,"filter":{"x":1}}`:                         1,
		`{"action":"cancel","filter":{"reason":"busy"}}`:                          1, // once it was dropped, and all pushes matched
		`{"action":"move","all":true,"send_at":"2020-01-01T00:00:00Z"}`:           1,
		`{"action":"x","filter":{"campaign":"y","status":"sent"},"shift":"soon"}`: 4,
		`{"action":"cancel","filter":{"from":"2030-01-02T00:00:00Z","until":"2030-01-01T00:00:00Z"},"nonsense":true}`: 2,
	} {
		r := b.send("POST", "/v1/bulk-changes", body).must(t, 422, "invalid-request")
		if errors := r.at(t, "errors").([]any); len(errors) != want {
			t.Errorf("%s: %d errors, want %d: %s", body, len(errors), want, r.text)
		}
	}
	if all := b.send("GET", "/v1/bulk-changes", "").at(t, "bulk_changes").([]any); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

// TestBulkChange_TooMany: a tenant has five under way; when one was stopped, there is room for another.
func TestBulkChange_TooMany(t *testing.T) {
	b := setup(t)
	var path string
	for range bulk.MaxRunning {
		path = "/v1/bulk-changes/" + b.send("POST", "/v1/bulk-changes", `{"action":"cancel","all":true}`).must(t, 202).at(t, "id").(string)
	}
	b.send("POST", "/v1/bulk-changes", `{"action":"cancel","all":true}`).must(t, 409, "too-many-bulk-changes")
	if s := b.send("POST", path+"/cancel", "").must(t, 202).at(t, "status"); s != "canceling" {
		t.Errorf("it is %s", s)
	}
	b.bulkWorker()
	if s := b.send("GET", path, "").at(t, "status"); s != "canceled" {
		t.Errorf("it is %s", s)
	}
	b.send("POST", "/v1/bulk-changes", `{"action":"cancel","all":true}`).must(t, 202)
}
