package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// logged is the audit log, the latest first.
func (b *bundle) logged(query string) []any {
	b.t.Helper()
	return b.send("GET", "/v1/audit-log?"+query, "").must(b.t, 200).at(b.t, "entries").([]any)
}

// entries counts them in the table.
func (b *bundle) entries() int {
	b.t.Helper()
	return query[int](b, `SELECT count(*) FROM audit_log`)
}

// TestAuditLog_EveryOperation: whatever is no read leaves one entry, with who did it and what it was done to, or is listed as one that
// leaves none. No entry has a text of a message, an address, a secret or an attribute.
func TestAuditLog_EveryOperation(t *testing.T) {
	b := setup(t)
	stories := logStories()
	for path, item := range served(t)["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			id := op.(map[string]any)["operationId"].(string)
			_, told := stories[id]
			_, silent := notLogged[id]
			if isRead := method == "get" || method == "head"; told == silent != isRead || isRead && (told || silent) {
				t.Errorf("%s %s, %s: has a story: %v, listed as not logged: %v", method, path, id, told, silent)
			}
		}
	}
	actor := map[string]any{"type": "key", "id": b.keyID(), "name": nil}
	for n, name := range slices.Sorted(maps.Keys(stories)) {
		story := stories[name]
		t.Run(name, func(t *testing.T) {
			r := story.prepare(b, n)
			before := b.entries()
			answer := b.send(r.method, r.path, r.body, r.headers...)
			if answer.status >= 300 {
				t.Fatalf("%d: %s", answer.status, answer.text)
			}
			if n := b.entries() - before; n != 1 {
				t.Fatalf("%d entries, want 1", n)
			}
			entry := b.logged("page_size=1")[0].(map[string]any)
			var target any = r.target
			switch r.target {
			case "?":
				if id, ok := answer.body["id"]; ok {
					target = id
				} else {
					target = fmt.Sprint(answer.at(t, "version"))
				}
			case "":
				target = nil
			}
			want := map[string]any{"actor": actor, "action": string(story.action), "target": map[string]any{"type": story.action.Type(), "id": target}}
			delete(entry, "at")
			delete(entry, "id")
			delete(entry, "difference")
			delete(entry["target"].(map[string]any), "name")
			if diff := cmp.Diff(want, entry); diff != "" {
				t.Error(diff)
			}
		})
	}
	if found := query[string](b, `SELECT coalesce(string_agg(l::text, E'\n'), '') FROM audit_log l WHERE l::text ~ $1`, secretText); found != "" {
		t.Errorf("the log has texts that it must not have:\n%s", found)
	}
	others := b.send("GET", "/v1/audit-log", "", "Authorization", "Bearer "+b.other).must(t, 200)
	for _, e := range others.at(t, "entries").([]any) {
		if fmt.Sprint(e.(map[string]any)["actor"]) != "map[id:<nil> name:<nil> type:system]" {
			t.Errorf("another tenant sees %v", e)
		}
	}
}

// TestAuditLog_SameTransaction: where its entry cannot be written, a change is not made.
func TestAuditLog_SameTransaction(t *testing.T) {
	b := setupAlone(t)
	rows := func() string {
		return query[string](b, `SELECT concat_ws(' ', (SELECT md5(string_agg(p::text, '' ORDER BY id)) FROM pushes p), (SELECT md5(string_agg(k.id || k.scopes::text || coalesce(k.revoked_at::text, '') || coalesce(k.expires_at::text, ''), '' ORDER BY id)) FROM api_keys k),
			(SELECT md5(string_agg(w::text, '' ORDER BY id)) FROM webhooks w), (SELECT md5(string_agg(d::text, '' ORDER BY id)) FROM webhook_deliveries d), (SELECT md5(string_agg(p::text, '' ORDER BY tenant_id, version)) FROM policies p),
			(SELECT md5(string_agg(s::text, '' ORDER BY id)) FROM schedules s), (SELECT md5(string_agg(c::text, '' ORDER BY id)) FROM campaigns c), (SELECT md5(string_agg(c::text, '' ORDER BY id)) FROM bulk_changes c), (SELECT md5(string_agg(r::text, '' ORDER BY recipient)) FROM recipients r))`)
	}
	stories := logStories()
	for n, name := range slices.Sorted(maps.Keys(stories)) {
		t.Run(name, func(t *testing.T) {
			r := stories[name].prepare(b, n)
			before := rows()
			b.exec(`ALTER TABLE audit_log ADD CONSTRAINT never CHECK (false) NOT VALID`)
			defer b.exec(`ALTER TABLE audit_log DROP CONSTRAINT never`)
			if answer := b.send(r.method, r.path, r.body, r.headers...); answer.status < 500 {
				t.Errorf("%d: %s", answer.status, answer.text)
			}
			if rows() != before {
				t.Error("something was changed")
			}
		})
	}
}

// TestAuditLog_Refused: what is refused, asks only, or changes nothing leaves no entry.
func TestAuditLog_Refused(t *testing.T) {
	b := setup(t)
	first := b.send("POST", "/v1/pushes", pushBody("anna", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	b.send("POST", "/v1/pushes", pushBody("anna", b.in(2*time.Hour), "")).must(t, 201)
	b.send("PUT", "/v1/recipients/bert", `{"time_zone":"Asia/Tokyo","attributes":{"b":{"d":1,"c":[1.0]},"a":1}}`).must(t, 201)
	campaign := b.campaign(`{"name":"sale","message":{"title":"Hi"}}`)
	schedule := b.send("POST", "/v1/schedules", scheduleText(1), "Idempotency-Key", "k").must(t, 201).at(t, "id").(string)
	b.send("PUT", "/v1/policy", `{"rules":[{"name":"per-hour","limit":1,"window":"1h"}]}`).must(t, 200)
	before := b.entries()
	b.send("PATCH", "/v1/pushes/"+first, `{"send_at":"`+b.in(2*time.Hour+10*time.Second)+`"}`).must(t, 409, "quota-exceeded")
	b.send("PATCH", "/v1/pushes/"+first+"?validate_only=true", `{"send_at":"`+b.in(9*time.Hour)+`"}`).must(t, 200)
	b.send("PATCH", "/v1/pushes/"+first, `{"send_at":"`+b.in(-time.Hour)+`"}`).must(t, 422)
	b.send("POST", "/v1/pushes/"+first+"/retry", "").must(t, 409, "not-retryable")
	b.send("POST", "/v1/pushes/"+first+"/cancel", "", "Authorization", "Bearer "+b.other).must(t, 404)
	b.send("PUT", "/v1/recipients/bert", `{"time_zone":"Asia/Tokyo","attributes":{"a":1,"b":{"c":[1],"d":1}}}`).must(t, 200)
	b.send("POST", "/v1/recipients/import", "nothing\nx\n", "Content-Type", "text/csv").must(t, 422)
	b.send("PATCH", "/v1/campaigns/"+campaign, `{"name":"sale"}`).must(t, 200)
	b.send("POST", "/v1/campaigns/"+campaign+"/start", "").must(t, 409, "campaign-state")
	b.send("PATCH", "/v1/schedules/"+schedule, `{"paused":false}`).must(t, 200)
	b.send("POST", "/v1/schedules", scheduleText(1), "Idempotency-Key", "k").must(t, 201)
	b.send("PUT", "/v1/policy", `{}`, "If-Match", `"7"`).must(t, 412, "stale-policy")
	b.send("PUT", "/v1/policy?forecast=true", `{}`).must(t, 200)
	b.send("POST", "/v1/webhooks", `{"url":"nowhere"}`).must(t, 422)
	b.send("DELETE", "/v1/keys/"+b.keyID(), "").must(t, 409, "own-key")
	b.send("DELETE", "/v1/keys/"+uuid.NewString(), "").must(t, 404)
	if n := b.entries() - before; n != 0 {
		t.Errorf("%d entries: %v", n, b.logged(fmt.Sprintf("page_size=%d", n)))
	}
	b.send("POST", "/v1/pushes/"+first+"/cancel", "").must(t, 200)
	b.send("POST", "/v1/pushes/"+first+"/cancel", "").must(t, 200)
	if n := b.entries() - before; n != 1 {
		t.Errorf("a cancel and its repetition leave %d entries", n)
	}
}

// TestAuditLog_Difference: an entry has the changed values, and of secret members only the fact of the change.
func TestAuditLog_Difference(t *testing.T) {
	b := setup(t)
	noon, later := b.in(time.Hour), b.in(3*time.Hour)
	moved := b.send("POST", "/v1/pushes", pushBody("anna", noon, `,"expires_at":"`+b.in(9*time.Hour)+`"`)).must(t, 201).at(t, "id").(string)
	b.send("PATCH", "/v1/pushes/"+moved, `{"send_at":"`+later+`"}`).must(t, 200)
	b.send("PUT", "/v1/recipients/anna", `{"addresses":{"sms":"+45 1","push":"a"},"limits":[{"rule":"per-day","limit":20}],"attributes":{"plan":"gold","age":7}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/anna", `{"addresses":{"sms":"+45 2","push":"a"},"opt_outs":{"all":true},"limits":[{"rule":"per-day","limit":30}],"attributes":{"plan":"silver","age":7}}`).must(t, 200)
	long := make([]string, 0, 50)
	for i := range 50 {
		long = append(long, fmt.Sprintf(`{"name":"rule-%d-%s","limit":1,"window":"1h","channels":["push","sms"],"categories":["%s"]}`, i, strings.Repeat("x", 40), strings.Repeat("y", 60)))
	}
	b.send("PUT", "/v1/policy", `{"default_zone":"Asia/Tokyo","rules":[`+strings.Join(long, ",")+`]}`).must(t, 200)
	var got []any
	for _, e := range b.logged("page_size=4&actor_type=key") {
		got = append(got, e.(map[string]any)["difference"])
	}
	none := map[string]any{"changed": true}
	want := []any{
		map[string]any{"version": map[string]any{"from": 0.0, "to": 1.0}, "default_zone": map[string]any{"to": "Asia/Tokyo"}, "rules": none, "apply": map[string]any{"to": "new_only"}},
		map[string]any{
			"addresses": map[string]any{"changed": []any{"sms"}}, "attributes": map[string]any{"changed": []any{"plan"}}, "opt_outs.all": map[string]any{"from": false, "to": true},
			"limits": map[string]any{"from": map[string]any{"per-day": 20.0}, "to": map[string]any{"per-day": 30.0}}, "canceled": map[string]any{"from": 0.0, "to": 1.0},
		},
		map[string]any{
			"addresses": map[string]any{"changed": []any{"push", "sms"}}, "attributes": map[string]any{"changed": []any{"age", "plan"}},
			"limits": map[string]any{"to": map[string]any{"per-day": 20.0}},
		},
		map[string]any{"send_at": map[string]any{"from": noon, "to": later}, "requested_send_at": map[string]any{"from": noon, "to": later}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAuditLog_Import: an import has one entry, with what it stored, whatever its size, and also where it broke off.
func TestAuditLog_Import(t *testing.T) {
	b := setup(t)
	var lines strings.Builder
	lines.WriteString("recipient,attribute.plan\n")
	for i := range 3 * importedAtOnce {
		fmt.Fprintf(&lines, "import-%d,gold\n", i)
	}
	before := b.entries()
	b.send("POST", "/v1/recipients/import", lines.String(), "Content-Type", "text/csv").must(t, 200)
	b.send("POST", "/v1/recipients/import", "recipient,attribute.plan\nimport-1,silver\nimport-n,silver\n", "Content-Type", "text/csv").must(t, 200)
	if n := b.entries() - before; n != 2 {
		t.Fatalf("%d entries", n)
	}
	want := []string{`{"canceled":{"to":0},"created":{"to":1},"updated":{"to":1}}`, fmt.Sprintf(`{"canceled":{"to":0},"created":{"to":%d},"updated":{"to":0}}`, 3*importedAtOnce)}
	for i, e := range b.logged("page_size=2") {
		if text, _ := json.Marshal(e.(map[string]any)["difference"]); string(text) != want[i] {
			t.Errorf("%s, want %s", text, want[i])
		}
	}
}

// TestAuditLog_Erased: nothing in the log names a recipient who was erased, and who comes back is named again.
func TestAuditLog_Erased(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/anna-to-forget", `{"time_zone":"Asia/Tokyo","attributes":{"hobby-anna":"x"}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/bert", `{}`).must(t, 201)
	b.send("DELETE", "/v1/recipients/anna-to-forget", "").must(t, 200)
	if found := query[string](b, `SELECT coalesce(string_agg(l::text, E'\n'), '') FROM audit_log l WHERE l::text ~ 'anna|Tokyo'`); found != "" {
		t.Errorf("left: %s", found)
	}
	if all := b.logged("action=recipient.put"); len(all) != 2 {
		t.Errorf("%v", all)
	}
	if all := b.logged("target=bert"); len(all) != 1 {
		t.Errorf("%v", all)
	}
	b.send("PUT", "/v1/recipients/anna-to-forget", `{}`).must(t, 201)
	if all := b.logged("target=anna-to-forget"); len(all) != 1 {
		t.Errorf("%v", all)
	}
}

// TestAuditLog_User: what a user of the console does is the user's, also in the versions of the policy.
func TestAuditLog_User(t *testing.T) {
	b := setup(t)
	user := push.Caller{Tenant: b.tenant, User: uuid.New(), Scopes: push.Scopes}
	r := httptest.NewRequestWithContext(rest.WithCaller(t.Context(), user), http.MethodPut, "/v1/policy", strings.NewReader(`{"default_zone":"Asia/Tokyo"}`))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	b.api.ServeHTTP(rec, r)
	if rec.Code != 200 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	all := b.logged("actor=" + user.User.String())
	if len(all) != 1 {
		t.Fatalf("%v", all)
	}
	if diff := cmp.Diff(map[string]any{"type": "user", "id": user.User.String(), "name": nil}, all[0].(map[string]any)["actor"]); diff != "" {
		t.Error(diff)
	}
	if by := b.send("GET", "/v1/policy/versions", "").must(t, 200).at(t, "versions", 0, "by"); by != user.User.String() {
		t.Errorf("version by %v", by)
	}
}
