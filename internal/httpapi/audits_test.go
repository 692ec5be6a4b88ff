package httpapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// TestAudits shows each audit with what it found of the tenant, and which guarantee its checks prove.
func TestAudits(t *testing.T) {
	b := setup(t)
	const id = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	b.exec(`INSERT INTO audits (began_at, ended_at, complete) VALUES ('2026-12-01 08:00Z', '2026-12-01 08:01Z', true), ('2026-12-01 08:15Z', '2026-12-01 08:16Z', false)`)
	b.exec(`INSERT INTO audit_findings (tenant_id, began_at, check_name, violations, pushes)
		VALUES ('` + b.tenant.String() + `', '2026-12-01 08:00Z', 'overdue', 3, '{` + id + `}'), ('` + b.tenant.String() + `', '2026-12-01 08:00Z', 'lost', 1, '{}')`)
	first := map[string]any{"began_at": "2026-12-01T08:00:00Z", "ended_at": "2026-12-01T08:01:00Z", "complete": true, "violations": 4.0, "found": []any{
		map[string]any{"check": "lost", "violations": 1.0, "pushes": []any{}}, map[string]any{"check": "overdue", "violations": 3.0, "pushes": []any{id}},
	}}
	second := map[string]any{"began_at": "2026-12-01T08:15:00Z", "ended_at": "2026-12-01T08:16:00Z", "complete": false, "violations": 0.0, "found": []any{}}
	checks := []any{map[string]any{"name": "overdue", "meaning": "It waits.", "guarantee": "I1", "link": "https://github.com/sendquota/sendquota/blob/main/docs/guarantees.md#what-is-promised"}}
	got := b.send("GET", "/v1/audits", "").must(t, 200)
	if diff := cmp.Diff(map[string]any{"audits": []any{second, first}, "checks": checks, "next_page_token": ""}, got.body); diff != "" {
		t.Error(diff)
	}
	page := b.send("GET", "/v1/audits?page_size=1", "").must(t, 200)
	token := page.at(t, "next_page_token").(string)
	next := b.send("GET", "/v1/audits?page_size=1&page_token="+token, "").must(t, 200)
	if diff := cmp.Diff([]any{first}, next.at(t, "audits")); diff != "" || next.at(t, "next_page_token") != "" {
		t.Errorf("%s in %s", diff, next.text)
	}

	others := b.send("GET", "/v1/audits", "", "Authorization", "Bearer "+b.other).must(t, 200)
	if others.at(t, "audits", 1, "violations") != 0.0 || len(others.at(t, "audits").([]any)) != 2 {
		t.Errorf("%s", others.text)
	}
	b.send("GET", "/v1/audits?page_token="+token, "", "Authorization", "Bearer "+b.other).must(t, 422, "invalid-request")
	if bad := b.send("GET", "/v1/audits?page_size=x&from=1", "").must(t, 422, "invalid-request"); len(bad.at(t, "errors").([]any)) != 2 {
		t.Errorf("%s", bad.text)
	}
	_, lesser := b.newTenant("lesser", push.ScopeRead)
	b.send("GET", "/v1/audits", "", "Authorization", "Bearer "+lesser).must(t, 403, "forbidden")
}
