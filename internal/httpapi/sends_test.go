package httpapi

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// forgeSends stores n attempts of a tenant, in the last 25 hours, each tenth on another channel, and in groups of
// four that began at the same time.
func (b *bundle) forgeSends(tenant uuid.UUID, n int) {
	b.t.Helper()
	query[int](b, fmt.Sprintf(`
		WITH made AS (
			INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, shard, recipient, channel, category, started_at, lease_until, ended_at, outcome, send_at)
			SELECT gen_random_uuid(), 1, '%[1]s', i, i & 255, 'r' || i, CASE WHEN i %% 10 = 0 THEN 'sms' ELSE 'push' END, 'news', at, at, at + interval '1 second', 'delivered', at
			FROM generate_series(1, %[2]d) i, LATERAL (SELECT date_trunc('minute', now()) - (i / 4) * interval '25 hours' / %[2]d * 4 AS at) t
			RETURNING 1
		) SELECT count(*) FROM made`, tenant, n))
}

// sends reads a list to its end.
func (b *bundle) sends(query url.Values) (pushes []string, pages int) {
	b.t.Helper()
	for {
		r := b.send("GET", "/v1/sends?"+query.Encode(), "").must(b.t, 200)
		pages++
		for _, one := range r.at(b.t, "sends").([]any) {
			pushes = append(pushes, one.(map[string]any)["push"].(string))
		}
		next := r.at(b.t, "next_page_token").(string)
		if next == "" {
			return pushes, pages
		}
		query.Set("page_token", next)
	}
}

// TestSends: an attempt that has ended is listed, with all that is known of it, to those who may know.
func TestSends(t *testing.T) {
	b := setup(t)
	id := b.send("POST", "/v1/pushes", pushBody("aiko", b.in(0), `,"category":"news"`)).must(t, 201).at(t, "id")
	b.attempt("aiko", booking.Finish{Outcome: push.Unknown, Error: "reset", Resolution: push.Resolution{Status: push.Failed, Reason: "reset"}})
	r := b.send("GET", "/v1/sends", "").must(t, 200)
	one := r.at(t, "sends").([]any)[0].(map[string]any)
	for name, want := range map[string]any{
		"push": id, "attempt": 1.0, "recipient": "aiko", "channel": "push", "category": "news", "campaign": nil, "outcome": "unknown", "error": "reset", "provider_message_id": "",
	} {
		if got, ok := one[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if one["send_at"] == nil || one["started_at"] == nil || one["ended_at"] == nil || r.at(t, "next_page_token") != "" {
		t.Error(r.text)
	}
	for query, want := range map[string]int{
		"recipient=aiko": 1, "recipient=bert": 0, "channel=push": 1, "channel=sms": 0, "category=news": 1, "category=other": 0, "outcome=unknown": 1, "outcome=delivered": 0,
		"campaign=" + uuid.NewString(): 0, "from=" + b.in(-time.Minute): 1, "from=" + b.in(time.Minute): 0, "until=" + b.in(-time.Minute): 0, "until=" + b.in(time.Minute): 1,
	} {
		values, _ := url.ParseQuery(query)
		if found, _ := b.sends(values); len(found) != want {
			t.Errorf("%s finds %d, want %d", query, len(found), want)
		}
	}
	for _, query := range []string{"a=b", "outcome=x", "campaign=x", "from=x", "page_size=0", "page_token=x"} {
		b.send("GET", "/v1/sends?"+query, "").must(t, 422, "invalid-request")
	}
	if n := len(ask(t, b.api, "GET", "/v1/sends", "", "Authorization", "Bearer "+b.other).must(t, 200).at(t, "sends").([]any)); n != 0 {
		t.Errorf("another tenant sees %d", n)
	}
	b.send("DELETE", "/v1/recipients/aiko", "").must(t, 200)
	if found, _ := b.sends(url.Values{}); len(found) != 0 {
		t.Error("an erased recipient is listed")
	}
}

// TestSends_Pages: pages follow one another without a gap, in order, also where many attempts began at the same time, and where few fit.
func TestSends_Pages(t *testing.T) {
	b := setup(t)
	b.forgeSends(b.tenant, 6000) // over more than a day
	whole := strings.Fields(query[string](b, `SELECT string_agg(push_id::text, ' ' ORDER BY started_at, push_id) FROM sends`))
	for _, size := range []string{"7", "500"} {
		if found, _ := b.sends(url.Values{"page_size": {size}}); !slices.Equal(found, whole) {
			t.Errorf("pages of %s have %d attempts, want %d in order", size, len(found), len(whole))
		}
	}
	few := strings.Fields(query[string](b, `SELECT string_agg(push_id::text, ' ' ORDER BY started_at, push_id) FROM sends WHERE channel = 'sms'`))
	if found, pages := b.sends(url.Values{"channel": {"sms"}, "page_size": {"50"}}); !slices.Equal(found, few) || pages > 13 {
		t.Errorf("%d attempts on %d pages, want %d", len(found), pages, len(few))
	}
}

// TestSends_Export: an export has the same attempts as the list, in either form, and goes on behind any of its lines.
func TestSends_Export(t *testing.T) {
	b := setup(t)
	b.forgeSends(b.tenant, 2500)
	other, _ := b.newTenant("other", push.ScopeRead)
	b.forgeSends(other, 10)
	whole, _ := b.sends(url.Values{"page_size": {"500"}})

	lines := b.send("GET", "/v1/sends/export", "").must(t, 200)
	var (
		asLines []string
		tokens  []string
	)
	for s := bufio.NewScanner(strings.NewReader(lines.text)); s.Scan(); {
		var one struct {
			Push  string `json:"push"`
			Token string `json:"page_token"`
		}
		if err := json.Unmarshal(s.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		asLines, tokens = append(asLines, one.Push), append(tokens, one.Token)
	}
	if !slices.Equal(asLines, whole) || lines.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%d lines of %s, want %d", len(asLines), lines.header.Get("Content-Type"), len(whole))
	}
	table := b.send("GET", "/v1/sends/export", "", "Accept", "text/csv, application/x-ndjson;q=0.5").must(t, 200)
	records, err := csv.NewReader(strings.NewReader(table.text)).ReadAll()
	if err != nil || len(records) != len(whole)+1 || strings.Join(records[0], ",") != "push,attempt,recipient,channel,category,campaign,send_at,started_at,ended_at,outcome,provider_message_id,error,late_ms,segments,page_token" {
		t.Fatalf("%d records, %v: %q", len(records), err, records[0])
	}
	for i, r := range records[1:] {
		if r[0] != whole[i] || r[len(r)-1] != tokens[i] {
			t.Fatalf("record %d is %q, want %s", i, r, whole[i])
		}
	}
	for _, i := range []int{0, 999, 1000, 2498, 2499} {
		rest := b.send("GET", "/v1/sends/export?page_token="+tokens[i], "").must(t, 200)
		if n := strings.Count(rest.text, "\n"); n != len(whole)-i-1 || n > 0 && !strings.Contains(rest.text[:100], whole[i+1]) {
			t.Errorf("behind line %d are %d, want %d", i, n, len(whole)-i-1)
		}
	}
	b.send("GET", "/v1/sends/export?channel=sms&page_token="+tokens[0], "").must(t, 422, "invalid-request")
	b.send("GET", "/v1/sends/export", "", "Accept", "image/png").must(t, 406, "not-acceptable")
	if n := strings.Count(b.send("GET", "/v1/sends/export?channel=sms", "").must(t, 200).text, "\n"); n != 250 {
		t.Errorf("%d lines through a channel, want 250", n)
	}
}
