package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// suppress adds an entry.
func (b *bundle) suppress(channel, address string) reply {
	b.t.Helper()
	return b.send("PUT", "/v1/suppressions", fmt.Sprintf(`{"channel": %q, "address": %q}`, channel, address))
}

func addressed(recipient, to, at string) string {
	return fmt.Sprintf(`{"recipient": %q, "channel": "sms", "to": %q, "send_at": %q, "message": {"title": "x"}}`, recipient, to, at)
}

// TestSuppressions_Lifecycle suppresses an address, which cancels and refuses, lists it, and allows it again. Others do not see it.
func TestSuppressions_Lifecycle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.send("PUT", "/v1/recipients/bert", `{"addresses": {"sms": "+4512345678"}}`).must(t, 201)
	first := b.send("POST", "/v1/pushes", addressed("anna", "+4512345678", b.in(time.Hour))).must(t, 201).at(t, "id").(string)
	second := b.send("POST", "/v1/pushes", strings.Replace(addressed("bert", "", b.in(time.Hour)), `"to": "", `, "", 1)).must(t, 201).at(t, "id").(string)
	other := b.send("POST", "/v1/pushes", addressed("carl", "+4587654321", b.in(time.Hour))).must(t, 201).at(t, "id").(string)
	made := b.suppress("sms", "+4512345678").must(t, 201)
	for member, want := range map[string]any{"channel": "sms", "address": "+4512345678", "reason": "manual", "until": nil, "push": nil, "canceled": 2.0} {
		if got := made.body[member]; got != want {
			t.Errorf("%s is %v, want %v", member, got, want)
		}
	}
	b.suppress("sms", "+4512345678").must(t, 200)
	for _, id := range []string{first, second} {
		if p := b.send("GET", "/v1/pushes/"+id, ""); p.at(t, "status") != "canceled" || p.at(t, "last_error") != "suppressed" {
			t.Errorf("%s", p.text)
		}
	}
	if p := b.send("GET", "/v1/pushes/"+other, ""); p.at(t, "status") != "scheduled" {
		t.Errorf("%s", p.text)
	}
	refused := b.send("POST", "/v1/pushes", addressed("dora", "+4512345678", b.in(time.Hour))).must(t, 409)
	if !strings.HasSuffix(refused.at(t, "type").(string), "suppressed") || refused.at(t, "suppression", "reason") != "manual" || strings.Contains(refused.text, "4512345678") {
		t.Errorf("%s", refused.text)
	}
	check := b.send("POST", "/v1/quota/check", strings.Replace(addressed("bert", "", b.in(time.Hour)), `"to": "", `, "", 1)).must(t, 200)
	if check.at(t, "allowed") != false || check.at(t, "suppression", "channel") != "sms" || check.body["next_available_at"] != nil {
		t.Errorf("check: %s", check.text)
	}
	batch := b.send("POST", "/v1/pushes/batch", `{"atomic": true, "pushes": [`+addressed("dora", "+4512345678", b.in(time.Hour))+`,`+addressed("emil", "+4511111111", b.in(time.Hour))+`]}`).must(t, 409)
	if !strings.HasSuffix(batch.at(t, "type").(string), "suppressed") {
		t.Errorf("batch: %s", batch.text)
	}
	query := "?channel=sms&address=" + url.QueryEscape("+4512345678")
	if list := b.send("GET", "/v1/suppressions"+query+"&reason=manual", ""); len(list.at(t, "suppressions").([]any)) != 1 || list.body["next_page_token"] != "" {
		t.Errorf("list: %s", list.text)
	}
	if list := b.send("GET", "/v1/suppressions", "", "Authorization", "Bearer "+b.other); len(list.at(t, "suppressions").([]any)) != 0 {
		t.Errorf("another tenant sees %s", list.text)
	}
	b.send("DELETE", "/v1/suppressions"+query, "", "Authorization", "Bearer "+b.other).must(t, 404)
	b.send("DELETE", "/v1/suppressions"+query+"&reason=stop", "").must(t, 404)
	b.send("DELETE", "/v1/suppressions"+query, "").must(t, 204)
	b.send("DELETE", "/v1/suppressions"+query, "").must(t, 404)
	b.send("POST", "/v1/pushes", addressed("dora", "+4512345678", b.in(time.Hour))).must(t, 201)
}

// TestSuppressions_Errors checks that all errors of an entry are reported at once, each with its place.
func TestSuppressions_Errors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct{ method, query, body, want string }{
		{"PUT", "", `{}`, "body.channel body.address"},
		{"PUT", "", `{"channel": "fax", "address": "x", "reason": "hate", "until": "2020-01-01T00:00:00Z", "x": 1}`, "body.reason body.x body.until body.channel"},
		{"PUT", "", `{"channel": "sms", "address": "", "until": "soon"}`, "body.address body.until"},
		{"PUT", "", fmt.Sprintf(`{"channel": "sms", "address": %q}`, strings.Repeat("x", 2049)), "body.address"},
		{"DELETE", "", "", "query.channel query.address"},
		{"DELETE", "?channel=sms&address=x&reason=hate", "", "query.reason"},
		{"GET", "?reason=hate&channel=", "", "query.reason"},
	} {
		r := b.send(tt.method, "/v1/suppressions"+tt.query, tt.body).must(t, 422)
		for _, place := range strings.Fields(tt.want) {
			if !strings.Contains(r.text, `"`+place+`"`) {
				t.Errorf("%s %s%s: %s names no %s", tt.method, tt.query, tt.body, r.text, place)
			}
		}
	}
}

// TestSuppressions_Import reads what an export has written, for another tenant, and reports bad lines.
func TestSuppressions_Import(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held := b.send("POST", "/v1/pushes", addressed("anna", "+4500000001", b.in(time.Hour))).must(t, 201).at(t, "id").(string)
	in := b.send("POST", "/v1/suppressions/import", strings.Join([]string{
		"channel;address;reason;until;note", "sms;+4500000001;stop;;", "sms;=x;;2099-01-01T00:00:00Z;", "fax;x;;;", "sms;y;hate;;", "sms;;;;", "sms;z;;yesterday;", "sms;+4500000001;STOP;;", "sms;4.5E+11;;;",
	}, "\n"), "Content-Type", "text/csv").must(t, 422)
	if !strings.Contains(in.text, "unknown column") {
		t.Errorf("%s", in.text)
	}
	in = b.send("POST", "/v1/suppressions/import", strings.Join([]string{
		"channel;address;reason;until", "sms;+4500000001;stop;", "sms;=x;;2099-01-01T00:00:00Z", "fax;x;;", "sms;y;hate;", "sms;;;", "sms;z;;yesterday", "sms;+4500000001;STOP;", "sms;4.5E+11;;",
	}, "\n"), "Content-Type", "text/csv").must(t, 200)
	if counts := fmt.Sprint(in.at(t, "rows"), in.at(t, "created"), in.at(t, "updated"), in.at(t, "rejected"), in.at(t, "canceled")); counts != "8 2 1 5 1" {
		t.Errorf("%s: %s", counts, in.text)
	}
	if p := b.send("GET", "/v1/pushes/"+held, ""); p.at(t, "status") != "canceled" {
		t.Errorf("%s", p.text)
	}
	for _, media := range []string{"text/csv", "application/x-ndjson"} {
		out := b.send("GET", "/v1/suppressions/export", "", "Accept", media).must(t, 200)
		b.send("DELETE", "/v1/suppressions?channel=sms&address="+url.QueryEscape("=x"), "", "Authorization", "Bearer "+b.other)
		text := out.text
		if media != "text/csv" { // a line of an export has more members than an entry
			text = `{"channel": "sms", "address": "=x", "reason": "manual"}`
		}
		again := b.send("POST", "/v1/suppressions/import", text, "Content-Type", media, "Authorization", "Bearer "+b.other).must(t, 200)
		if again.at(t, "rejected") != 0.0 || again.at(t, "rows").(float64) < 1 {
			t.Errorf("%s: %s, then %s", media, out.text, again.text)
		}
		if list := b.send("GET", "/v1/suppressions?address="+url.QueryEscape("=x"), "", "Authorization", "Bearer "+b.other); len(list.at(t, "suppressions").([]any)) != 1 {
			t.Errorf("%s: %s", media, list.text)
		}
	}
}

// TestErase_Suppressions checks that the erasure of a person removes the addresses that no other recipient has.
func TestErase_Suppressions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.send("PUT", "/v1/recipients/anna", `{"addresses": {"sms": "own", "push": "shared"}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/bert", `{"addresses": {"push": "shared"}}`).must(t, 201)
	b.send("POST", "/v1/pushes", addressed("anna", "given", b.in(time.Hour))).must(t, 201)
	for _, e := range [][2]string{{"sms", "own"}, {"push", "shared"}, {"sms", "given"}, {"sms", "foreign"}} {
		b.suppress(e[0], e[1]).must(t, 201)
	}
	b.send("DELETE", "/v1/recipients/anna", "").must(t, 200)
	left := b.send("GET", "/v1/suppressions", "")
	if all := left.at(t, "suppressions").([]any); len(all) != 2 || strings.Contains(left.text, `"own"`) || strings.Contains(left.text, `"given"`) {
		t.Errorf("%s", left.text)
	}
}

// TestSuppressions_Campaign checks that the simulation of a campaign counts suppressed addresses as refused.
func TestSuppressions_Campaign(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.suppress("push", "x").must(t, 201)
	id := b.send("POST", "/v1/campaigns", `{"name": "x", "channel": "push", "message": {"title": "x"}}`).must(t, 201).at(t, "id").(string)
	b.send("PUT", "/v1/campaigns/"+id+"/audience", "recipient,to\nanna,x\nbert,y\n", "Content-Type", "text/csv").must(t, 200)
	r := b.send("POST", "/v1/campaigns/"+id+"/simulate", `{"send_at": "`+b.in(time.Hour)+`"}`).must(t, 200)
	if fmt.Sprint(r.at(t, "accepted"), r.at(t, "refused")) != "1 1" {
		t.Errorf("%s", r.text)
	}
}
