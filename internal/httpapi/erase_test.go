package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// tracesOf lists the columns of all tables, and the keys of Redis, that contain texts, by text.
func tracesOf(t *testing.T, b *bundle, texts ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	looks := query[[]string](b, `
		SELECT array_agg(format('SELECT text, %L FROM %I JOIN unnest($1::text[]) text ON strpos(%I::text, text) > 0', c.table_name || '.' || c.column_name, c.table_name, c.column_name))
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' AND c.data_type NOT IN ('boolean', 'bigint', 'integer', 'smallint', 'uuid')
			AND c.data_type NOT LIKE 'timestamp%'`)
	if len(looks) < 50 {
		t.Fatalf("%d columns", len(looks))
	}
	text := query[string](b, `SELECT coalesce(json_object_agg(text, places), '{}')::text FROM (SELECT text, array_agg(place) AS places FROM (`+
		strings.Join(looks, " UNION ALL ")+`) l (text, place) GROUP BY text) l`, texts)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	keys, err := b.rdb.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		dump, _ := b.rdb.Dump(t.Context(), key).Result() // it may be gone by now
		for _, text := range texts {
			if strings.Contains(key+dump, text) {
				found[text] = append(found[text], "the key "+key)
			}
		}
	}
	return found
}

// attempt claims what is due for a recipient, and ends the attempt.
func (b *bundle) attempt(recipient string, f booking.Finish) booking.Claim {
	b.t.Helper()
	c, err := b.store.Claim(b.t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, recipient), Lease: time.Minute})
	if err != nil || c.Outcome != booking.Claimed {
		b.t.Fatalf("%+v, %v", c, err)
	}
	if f.Outcome != "" {
		f.Attempt = c.Attempted()
		if _, err := b.store.Finish(context.Background(), f); err != nil {
			b.t.Fatal(err)
		}
	}
	return c
}

// TestErase_NoTrace: nothing that names or describes the recipient is left anywhere, what was sent still counts, and others keep
// what is theirs.
func TestErase_NoTrace(t *testing.T) {
	policy := testPolicy()
	policy[0].Window = 8 * time.Minute // what is sent still counts at the end
	b := setupAlone(t, policy...)
	const name, other = "person-to-forget", "person-to-keep"
	marks := []string{name, "text-to-forget", "+4511111111", "meta-to-forget", "attr-to-forget", "request-to-forget", "provider-to-forget", "error-to-forget", "schedule-to-forget", "variable-to-forget"}
	testenv.Forge(t, b.url)
	hook := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/h"}`).must(t, 201).at(t, "id").(string)
	describe := `{"addresses":{"sms":"+4511111111"},"attributes":{"a":"attr-to-forget"}}`
	b.send("PUT", "/v1/recipients/"+name, describe).must(t, 201)
	b.send("PUT", "/v1/recipients/"+other, `{"attributes":{"a":"kept"}}`).must(t, 201)
	b.send("POST", "/v1/schedules", `{"name":"schedule-to-forget","cron":"@daily","push":{"recipient":"`+name+`","to":"+4511111111","message":{"body":"text-to-forget \u0000"}}}`).must(t, 201)
	submit := func(recipient, when, key string) string {
		body := `{"recipient":"` + recipient + `","to":"+4511111111","message":{"body":"text-to-forget \u0000"},"metadata":{"a":"meta-to-forget","b":"\u0000"},"category":"news"` + when + `}`
		return b.send("POST", "/v1/pushes", body, "Idempotency-Key", key, "X-Request-Id", "request-to-forget").must(t, 201).at(t, "id").(string)
	}
	sent := submit(name, ``, "k1")
	b.attempt(name, booking.Finish{Outcome: push.Delivered, ProviderMessageID: "provider-to-forget", Resolution: push.Resolution{Status: push.Sent}})
	failed := submit(name, `,"send_at":"`+b.in(9*time.Minute)+`"`, "k2")
	b.exec(`UPDATE pushes SET next_at = now(), send_at = send_at - interval '9 minutes' WHERE status = 'scheduled'`)
	b.attempt(name, booking.Finish{Outcome: push.Refused, Error: "error-to-forget", Resolution: push.Resolution{Status: push.Failed, Reason: "error-to-forget"}})
	later := submit(name, `,"send_at":"`+b.in(3*time.Hour)+`"`, "k3")
	far := submit(name, `,"send_at":"`+b.in(90*24*time.Hour)+`"`, "k4")
	kept := b.send("POST", "/v1/pushes", pushBody(other, b.in(3*time.Hour), "")).must(t, 201).at(t, "id").(string)
	drafted := b.campaignFor("recipient,to,first_name\n" + other + ",,Kept\n" + name + ",+4511111111,variable-to-forget\n")
	started := b.campaignFor("recipient,to,first_name\n" + other + ",,Kept\n" + name + ",+4511111111,variable-to-forget\n")
	b.send("POST", started+"/start", "").must(t, 202)
	w := b.campaignWorker()
	for range 5 {
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // the cache knows the recipient
		b.send("POST", "/v1/pushes", pushBody(name, b.in(3*time.Hour), "")).must(t, 409, "quota-exceeded")
	}
	if found := tracesOf(t, b, marks...); len(found) != len(marks) {
		t.Fatalf("some of %v stand nowhere before: %v", marks, found)
	}

	r := b.send("DELETE", "/v1/recipients/"+name, "").must(t, 200)
	if r.at(t, "canceled") != float64(3) || r.at(t, "erased").(float64) < 7 {
		t.Error(r.text)
	}
	if found := tracesOf(t, b, marks...); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
	if r := b.send("DELETE", "/v1/recipients/"+name, "").must(t, 200); r.text != "{\"canceled\":0,\"erased\":0}\n" {
		t.Error(r.text)
	}
	if p := b.send("GET", started, "").must(t, 200); p.at(t, "progress", "audience") != 2.0 || p.at(t, "progress", "canceled") != 1.0 || p.at(t, "progress", "scheduled") != 1.0 {
		t.Error(p.text)
	}
	if r := b.send("GET", drafted+"/recipients", "").must(t, 200); strings.Count(r.text, `"recipient":""`) != 1 {
		t.Error(r.text)
	}
	for _, id := range []string{sent, failed, later, far} {
		b.send("GET", "/v1/pushes/"+id, "").must(t, 404, "not-found")
		b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+b.in(time.Hour)+`"}`).must(t, 404, "not-found")
		b.send("POST", "/v1/pushes/"+id+"/cancel", "").must(t, 404, "not-found")
	}
	b.send("GET", "/v1/recipients/"+name, "").must(t, 404, "not-found")
	list := b.send("GET", "/v1/pushes?until="+b.in(4*time.Hour)+"&from="+b.in(2*time.Hour), "").must(t, 200).at(t, "pushes").([]any)
	if len(list) != 1 || list[0].(map[string]any)["id"] != kept {
		t.Errorf("the list has %v", list)
	}
	if got := b.send("GET", "/v1/recipients/"+other, "").must(t, 200); got.at(t, "attributes", "a") != "kept" {
		t.Error(got.text)
	}
	if deliveries := b.send("GET", "/v1/webhooks/"+hook+"/deliveries", "").must(t, 200); !strings.Contains(deliveries.text, sent) {
		t.Error("the events of what was sent are gone")
	}
	// A request that is repeated books nothing again.
	body := `{"recipient":"` + name + `","to":"+4511111111","message":{"body":"text-to-forget \u0000"},"metadata":{"a":"meta-to-forget","b":"\u0000"},"category":"news"}`
	b.send("POST", "/v1/pushes", body, "Idempotency-Key", "k1").must(t, 410, "push-gone")

	// Sent pushes count, at both gates.
	b.send("POST", "/v1/pushes", pushBody(name, b.in(0), "")).must(t, 409, "quota-exceeded")
	if r := b.send("GET", "/v1/recipients/"+name+"/quota?at="+b.in(10*time.Minute), "").must(t, 200); r.at(t, "rules").([]any)[1].(map[string]any)["used"] != float64(1) {
		t.Error(r.text)
	}
	again := b.send("POST", "/v1/pushes", pushBody(name, b.in(10*time.Minute), "")).must(t, 201).at(t, "id").(string)
	b.exec(`UPDATE pushes SET next_at = now(), send_at = date_trunc('second', now()) WHERE id = $1`, again)
	c, err := b.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, name), Lease: time.Minute, Policy: policy})
	if err != nil || c.Outcome != booking.PutOff {
		t.Errorf("the gate forgot what was sent: %+v, %v", c, err)
	}
}

// TestErase_UnderWay: an attempt under way ends as it will, without a trace; if it is to be tried again, it is not.
func TestErase_UnderWay(t *testing.T) {
	b := setupAlone(t)
	for i, f := range []booking.Finish{
		{Outcome: push.Delivered, ProviderMessageID: "provider-name", Resolution: push.Resolution{Status: push.Sent}},
		{Outcome: push.Refused, Error: "no mailbox name", Resolution: push.Resolution{Status: push.Failed, Reason: "no mailbox name"}},
		{Outcome: push.Refused, Error: "no mailbox name", Resolution: push.Resolution{Status: push.Scheduled, Reason: "no mailbox name"}},
	} {
		recipient := fmt.Sprintf("name-%d", i)
		b.send("POST", "/v1/pushes", pushBody(recipient, b.in(0), "")).must(t, 201)
		c := b.attempt(recipient, booking.Finish{})
		r := b.send("DELETE", "/v1/recipients/"+recipient, "").must(t, 200)
		if r.text != "{\"canceled\":0,\"erased\":1}\n" {
			t.Error(r.text)
		}
		f.Attempt = c.Attempted()
		if _, err := b.store.Finish(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if found := tracesOf(t, b, "name")["name"]; len(found) > 1 { // the table of the tenants' names
			t.Errorf("%d: %v", i, found)
		}
		c, err := b.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, recipient), Lease: time.Minute})
		if want := map[push.Status]booking.ClaimOutcome{push.Scheduled: booking.Unwanted}[f.Resolution.Status]; err != nil || c.Outcome != want {
			t.Errorf("%d: %+v, %v, want %d", i, c, err, want)
		}
	}
	findings, err := b.store.Audit(t.Context(), nil, time.Now().Add(-time.Hour))
	if err != nil || len(findings) > 0 {
		t.Errorf("the audit finds %+v, %v", findings, err)
	}
}
