package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// groups reads the numbers, and shows each group as its key and those that are asked for.
func (b *bundle) groups(query string, names ...string) string {
	b.t.Helper()
	if err := b.refused.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	r := b.send("GET", "/v1/stats"+query, "").must(b.t, 200)
	var all []string
	for _, one := range r.at(b.t, "groups").([]any) {
		g := one.(map[string]any)
		text := fmt.Sprintf("%q", g["key"])
		for _, name := range names {
			text += fmt.Sprint(" ", g[name])
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestStats: everything that is submitted counts once, in the right group, whether it was added up or not; and what only asks, or
// comes again, does not.
func TestStats(t *testing.T) {
	b := setup(t)
	b.send("POST", "/v1/pushes", pushBody("aiko", b.in(0), `,"category":"news"`)).must(t, 201)
	b.attempt("aiko", booking.Finish{Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}})
	b.send("POST", "/v1/pushes", pushBody("aiko", b.in(time.Second), `,"on_conflict":"defer","channel":"sms"`)).must(t, 201)
	for range 2 { // the second is a replay
		b.send("POST", "/v1/pushes", pushBody("bert", b.in(time.Hour), ""), "Idempotency-Key", "k").must(t, 201)
	}
	id := b.send("POST", "/v1/pushes", pushBody("carl", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	b.send("POST", "/v1/pushes/"+id+"/cancel", "").must(t, 200)
	b.send("POST", "/v1/pushes", pushBody("aiko", b.in(0), "")).must(t, 409, "quota-exceeded")
	b.send("POST", "/v1/pushes?validate_only=true", pushBody("aiko", b.in(0), "")).must(t, 409, "quota-exceeded")
	b.send("POST", "/v1/pushes?validate_only=true", pushBody("dora", b.in(0), "")).must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("", b.in(0), "")).must(t, 422, "invalid-request")
	b.send("PUT", "/v1/recipients/emil", `{"opt_outs":{"all":true}}`).must(t, 201)
	b.send("POST", "/v1/pushes/batch", `{"pushes":[`+pushBody("emil", b.in(time.Hour), "")+`,`+pushBody("fritz", b.in(2*time.Hour), "")+`]}`).must(t, 200)

	names := []string{"submitted", "accepted", "deferred", "refused", "sent", "failed", "expired", "canceled"}
	day := `"` + time.Now().UTC().Format(time.DateOnly) + `"`
	want := map[string]string{
		"":                              day + " 7 5 1 2 1 0 0 1",
		"?group_by=channel":             `"push" 6 4 0 2 1 0 0 1, "sms" 1 1 1 0 0 0 0 0`,
		"?group_by=category":            `"" 6 4 1 2 0 0 0 1, "news" 1 1 0 0 1 0 0 0`,
		"?group_by=campaign":            `"" 7 5 1 2 1 0 0 1`,
		"?group_by=rule":                `"per-minute" 1 0 0 1 0 0 0 0`,
		"?until=" + b.in(-24*time.Hour): "",
	}
	for _, when := range []string{"before", "after"} {
		for query, want := range want {
			if got := b.groups(query, names...); got != want {
				t.Errorf("%s adding up, %s: %s, want %s", when, query, got, want)
			}
		}
		if got := b.groups("", "late_ms_p50"); strings.HasSuffix(got, "<nil>") {
			t.Error("nothing is said of how late it was")
		}
		ahead := b.send("GET", "/v1/stats/ahead?group_by=hour", "").must(t, 200)
		total := 0.0
		for _, one := range ahead.at(t, "groups").([]any) {
			total += one.(map[string]any)["scheduled"].(float64)
		}
		if total != 3 {
			t.Errorf("%s adding up, %v are ahead, want 3: %s", when, total, ahead.text)
		}
		if n := len(b.send("GET", "/v1/stats/ahead?channel=sms", "").must(t, 200).at(t, "groups").([]any)); n != 1 {
			t.Errorf("%d days have some through a channel, want 1", n)
		}
		split := b.send("GET", "/v1/stats/ahead?group_by=day&split_by=channel&until="+b.in(72*time.Hour), "").must(t, 200)
		parts := map[string]float64{}
		for _, one := range split.at(t, "groups").([]any) {
			for _, part := range one.(map[string]any)["parts"].([]any) {
				parts[part.(map[string]any)["key"].(string)] += part.(map[string]any)["scheduled"].(float64)
			}
		}
		if parts["push"] != 2 || parts["sms"] != 1 || len(parts) != 2 || strings.Contains(ahead.text, "parts") {
			t.Errorf("%s adding up, parts are %v: %s", when, parts, split.text)
		}
		for _, none := range []string{"?channel=log", "?category=news", "?campaign=" + uuid.NewString(), "?from=" + b.in(48*time.Hour)} {
			if n := len(b.send("GET", "/v1/stats/ahead"+none, "").must(t, 200).at(t, "groups").([]any)); n != 0 {
				t.Errorf("%s finds %d", none, n)
			}
		}
		if more, err := b.store.FoldStatDeltas(t.Context()); more || err != nil {
			t.Fatal(more, err)
		}
	}
	if got := ask(t, b.api, "GET", "/v1/stats", "", "Authorization", "Bearer "+b.other).must(t, 200); len(got.at(t, "groups").([]any)) != 0 {
		t.Errorf("another tenant sees %s", got.text)
	}
	b.send("GET", "/v1/stats/ahead?group_by=hour&split_by=campaign&until="+b.in(63*24*time.Hour), "").must(t, 422, "invalid-request")
	b.send("GET", "/v1/stats/ahead?split_by=rule", "").must(t, 422, "invalid-request")
	b.send("GET", "/v1/stats/ahead?group_by=day&split_by=campaign&until="+b.in(63*24*time.Hour), "").must(t, 200)
	for _, query := range []string{"?group_by=x", "?from=x", "?a=b", "?from=" + b.in(2*time.Hour), "?from=2020-01-01T00:00:00Z"} {
		b.send("GET", "/v1/stats"+query, "").must(t, 422, "invalid-request")
		b.send("GET", "/v1/stats/ahead"+query+"&until="+b.in(time.Minute), "").must(t, 422, "invalid-request")
	}
}

// forgeCampaign stores a campaign with n recipients, from r1 on: every fourth was refused, every fifth has opted out, and
// the others are booked. They were decided in groups of ten, a minute apart.
func (b *bundle) forgeCampaign(n int) uuid.UUID {
	b.t.Helper()
	id := uuid.New()
	b.exec(fmt.Sprintf(`
		INSERT INTO campaigns (id, tenant_id, name, channel, category, message, status, audience_id, audience) VALUES ('%[1]s', '%[2]s', 'sale', 'sms', 'news', '{}', 'running', '%[1]s', %[3]d)`,
		id, b.tenant, n))
	for i := range n {
		who := fmt.Sprint("r", i+1)
		key := push.RecipientKey(b.tenant, who)
		b.exec(fmt.Sprintf(`
			INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line, outcome, requested_send_at, reason, rules, conflicts, decided_at)
			SELECT %[1]d, '%[2]s', %[3]d, '%[4]s', '%[5]s', '%[2]s', %[6]d, o, now(), CASE o WHEN 'refused' THEN 'quota-exceeded' ELSE '' END,
				CASE o WHEN 'refused' THEN '{per-day}'::text[] END, CASE o WHEN 'refused' THEN '[{"id": "x"}]'::json END, date_trunc('minute', now()) - interval '1 hour' + %[7]d * interval '1 minute'
			FROM (SELECT CASE WHEN %[6]d %% 4 = 0 THEN 'refused' WHEN %[6]d %% 5 = 0 THEN 'opted_out' ELSE 'booked' END AS o) o`,
			push.Shard(key), id, key, who, b.tenant, i+1, i/10))
	}
	return id
}

// refusals reads a list to its end.
func (b *bundle) refusals(query string) (all []map[string]any) {
	b.t.Helper()
	token := ""
	for {
		r := b.send("GET", "/v1/refusals?"+query+"&page_token="+token, "").must(b.t, 200)
		for _, one := range r.at(b.t, "refusals").([]any) {
			all = append(all, one.(map[string]any))
		}
		if token = r.at(b.t, "next_page_token").(string); token == "" {
			return all
		}
	}
}

// TestRefusals: all of campaigns are listed, and of a recipient the single pushes among them.
func TestRefusals(t *testing.T) {
	b := setup(t)
	first, second := b.forgeCampaign(40), b.forgeCampaign(20)
	b.send("POST", "/v1/pushes", pushBody("r4", b.in(time.Hour), "")).must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("r4", b.in(time.Hour), `,"category":"news"`)).must(t, 409, "quota-exceeded")
	for _, size := range []string{"3", "500"} {
		all := b.refusals("page_size=" + size)
		if len(all) != 16+8 {
			t.Errorf("%d refusals in pages of %s, want 24", len(all), size)
		}
		for i, r := range all {
			if i > 0 && all[i-1]["at"].(string) > r["at"].(string) {
				t.Errorf("%v comes behind %v", r, all[i-1])
			}
		}
	}
	for query, want := range map[string]int{
		"campaign=" + first.String(): 16, "campaign=" + second.String(): 8, "campaign=" + uuid.NewString(): 0, "rule=per-day": 15, "rule=x": 0, "recipient=r5": 2, "recipient=r1": 0,
		"from=" + b.in(time.Minute): 0, "until=" + b.in(-2*time.Hour): 0, "from=" + b.in(-2*time.Hour) + "&until=" + b.in(time.Minute): 24, "recipient=r4&campaign=" + first.String(): 1,
	} {
		if all := b.refusals(query); len(all) != want {
			t.Errorf("%s finds %d, want %d", query, len(all), want)
		}
	}
	var theirs []map[string]any
	testenv.Until(t, time.Millisecond, "two of campaigns and a single one", func() bool {
		theirs = b.refusals("recipient=r4&page_size=1") // single ones are kept behind the caller's back
		return len(theirs) == 3
	})
	single, of := theirs[2], theirs[0]
	if single["campaign"] != nil || single["reason"] != "quota-exceeded" || fmt.Sprint(single["rules"]) != "[per-minute]" || single["category"] != "news" || len(single["conflicts"].([]any)) != 1 {
		t.Errorf("%v", single)
	}
	if of["campaign"] == nil || of["channel"] != "sms" || of["reason"] != "quota-exceeded" || fmt.Sprint(of["rules"]) != "[per-day]" || of["recipient"] != "r4" || of["requested_send_at"] == nil {
		t.Errorf("%v", of)
	}
	if kinds, r := b.kinds("r4", "", 4); kinds != "refused refused booked refused" || !strings.Contains(r.text, `"reason":"no place: per-day"`) || !strings.Contains(r.text, first.String()) {
		t.Errorf("the timeline: %s", r.text)
	}
	if all := b.refusals("recipient=r5"); all[0]["reason"] != "opted-out" || fmt.Sprint(all[0]["rules"], all[0]["conflicts"]) != "[] []" {
		t.Errorf("%v", all)
	}
	if n := len(ask(t, b.api, "GET", "/v1/refusals", "", "Authorization", "Bearer "+b.other).must(t, 200).at(t, "refusals").([]any)); n != 0 {
		t.Errorf("another tenant sees %d", n)
	}
	for _, query := range []string{"a=b", "campaign=x", "page_token=x", "from=x"} {
		b.send("GET", "/v1/refusals?"+query, "").must(t, 422, "invalid-request")
	}
}
