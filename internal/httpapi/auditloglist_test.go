package httpapi

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// TestAuditLog_List: pages, filters and exports agree, over several weeks.
func TestAuditLog_List(t *testing.T) {
	b := setup(t)
	b.exec(`SELECT make_partitions('audit_log', now() - interval '70 days', now())`)
	b.exec(`INSERT INTO audit_log (tenant_id, created_at, actor, actor_id, action, target, difference)
		SELECT $1, date_trunc('hour', now()) - n * interval '1 hour', CASE n % 3 WHEN 0 THEN 'key' WHEN 1 THEN 'user' ELSE 'system' END, CASE n % 3 WHEN 2 THEN NULL ELSE $2::uuid END,
			CASE n % 2 WHEN 0 THEN 'push.cancel' ELSE 'push.move' END, 'target-' || n % 5, '{}'
		FROM generate_series(1, 1500) n`, b.tenant, rest.ExampleID)
	b.reopen() // a program that knows the partitions
	hour := b.now().UTC().Truncate(time.Hour)
	for name, tt := range map[string]struct {
		query url.Values
		want  int
	}{
		"all":    {url.Values{"until": {hour.Format(time.RFC3339)}}, 1500},
		"target": {url.Values{"target": {"target-1"}}, 300},
		"action": {url.Values{"action": {"push.move"}, "target": {"target-1"}}, 150},
		"actor":  {url.Values{"actor": {rest.ExampleID}}, 1000},
		"type":   {url.Values{"actor_type": {"user"}}, 500},
		"times":  {url.Values{"from": {hour.Add(-900 * time.Hour).Format(time.RFC3339)}, "until": {hour.Add(-300 * time.Hour).Format(time.RFC3339)}}, 600},
		"none":   {url.Values{"target": {"nobody"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var ids []string
			last := "9"
			tt.query.Set("page_size", "70")
			for token := "-"; token != ""; {
				if token != "-" {
					tt.query.Set("page_token", token)
				}
				page := b.send("GET", "/v1/audit-log?"+tt.query.Encode(), "").must(t, 200)
				for _, e := range page.at(t, "entries").([]any) {
					at := e.(map[string]any)["at"].(string)
					if at >= last {
						t.Fatalf("%s is not before %s", at, last)
					}
					last = at
					ids = append(ids, e.(map[string]any)["id"].(string))
				}
				token = page.at(t, "next_page_token").(string)
			}
			tt.query.Del("page_size")
			tt.query.Del("page_token")
			rows, err := csv.NewReader(strings.NewReader(b.send("GET", "/v1/audit-log/export?"+tt.query.Encode(), "", "Accept", "text/csv").must(t, 200).text)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, row := range rows[1:] {
				lines = append(lines, row[0])
			}
			if len(ids) != tt.want || !slices.Equal(ids, lines) {
				t.Errorf("%d in pages, %d in an export, want %d", len(ids), len(lines), tt.want)
			}
			if tt.want > 500 {
				tt.query.Set("page_token", rows[tt.want/2][10])
				rest := b.send("GET", "/v1/audit-log/export?"+tt.query.Encode(), "").must(t, 200)
				if n := strings.Count(rest.text, "\n"); n != tt.want-tt.want/2 {
					t.Errorf("behind line %d there are %d", tt.want/2, n)
				}
			}
		})
	}
	if bad := b.send("GET", "/v1/audit-log?page_size=x&actor=1&actor_type=a&action=b&from=c&when=d", "").must(t, 422, "invalid-request"); len(bad.at(t, "errors").([]any)) != 6 {
		t.Error(bad.text)
	}
	_, lesser := b.newTenant("lesser", push.ScopeRead)
	for _, path := range []string{"/v1/audit-log", "/v1/audit-log/export"} {
		b.send("GET", path, "", "Authorization", "Bearer "+lesser).must(t, 403, "forbidden")
		if r := b.send("GET", path+"?actor="+rest.ExampleID, "", "Authorization", "Bearer "+b.other).must(t, 200); strings.Contains(r.text, "target-") {
			t.Errorf("another tenant sees %s", r.text)
		}
	}
}

// TestAuditLog_Names: each of 600 keys and 600 users has its name in pages and exports, for callers who may list them; and none has one of
// another tenant.
func TestAuditLog_Names(t *testing.T) {
	b := setup(t)
	b.exec(`INSERT INTO api_keys (id, tenant_id, hash, scopes, name)
		SELECT md5('key ' || n)::uuid, $1, sha256(convert_to(n::text, 'UTF8')), '{}', 'key ' || n FROM generate_series(1, 600) n`, b.tenant)
	b.exec(`INSERT INTO users (id, tenant_id, email, role, name)
		SELECT md5('user ' || n)::uuid, $1, 'user-' || n || '@example.com', 'viewer', CASE n % 2 WHEN 0 THEN 'user ' || n ELSE '' END FROM generate_series(1, 600) n`, b.tenant)
	b.exec(`INSERT INTO audit_log (tenant_id, actor, actor_id, action, target, difference)
		SELECT $1, 'key', md5('key ' || n)::uuid, 'user.change', md5('user ' || n)::uuid, '{}' FROM generate_series(1, 600) n`, b.tenant)
	want := map[string]string{}
	for n := 1; n <= 600; n++ {
		want[fmt.Sprint("key ", n)] = fmt.Sprint("user ", n)
		if n%2 == 1 {
			want[fmt.Sprint("key ", n)] = fmt.Sprintf("user-%d@example.com", n)
		}
	}
	for token := "-"; token != ""; {
		query := url.Values{"page_size": {"250"}, "actor_type": {"key"}, "action": {"user.change"}}
		if token != "-" {
			query.Set("page_token", token)
		}
		page := b.send("GET", "/v1/audit-log?"+query.Encode(), "").must(t, 200)
		for i := range page.at(t, "entries").([]any) {
			key, _ := page.at(t, "entries", i, "actor", "name").(string)
			if user := page.at(t, "entries", i, "target", "name"); user == nil || user != want[key] {
				t.Errorf("%q has changed %v, want %q", key, user, want[key])
			}
			delete(want, key)
		}
		token = page.at(t, "next_page_token").(string)
	}
	if len(want) != 0 {
		t.Errorf("%d names are in no page", len(want))
	}
	_, lesser, err := b.store.CreateKey(t.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: []string{push.ScopeRecordsRead}})
	if err != nil {
		t.Fatal(err)
	}
	entry := b.send("GET", "/v1/audit-log?page_size=1&action=user.change", "", "Authorization", "Bearer "+lesser).must(t, 200)
	if entry.at(t, "entries", 0, "actor", "name") != nil || entry.at(t, "entries", 0, "target", "name") != nil {
		t.Errorf("names for a caller who may list neither keys nor users: %s", entry.text)
	}
	export := b.send("GET", "/v1/audit-log/export?action=user.change", "", "Accept", "text/csv").must(t, 200)
	if !strings.Contains(export.text, ",key 17,user.change,user,") || !strings.Contains(export.text, ",user-17@example.com,") {
		t.Errorf("an export without names: %.500s", export.text)
	}
}
