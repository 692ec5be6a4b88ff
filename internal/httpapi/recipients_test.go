package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// TestRecipients_Walk: a recipient is described, read, replaced as a whole and listed.
func TestRecipients_Walk(t *testing.T) {
	b := setup(t)
	b.send("GET", "/v1/recipients/aiko", "").must(t, 404, "not-found")
	whole := `{"time_zone":"Asia/Tokyo","addresses":{"sms":"+819012345678","push":"token"},"opt_outs":{"all":false,"channels":["sms"],"categories":["marketing"]},
		"limits":[{"rule":"per-day","limit":20},{"rule":"another","limit":0}],"attributes":{"first_name":"Aiko","n":1.5e3,"deep":{"a":[1,null,"\u00e4"]}}}`
	made := b.send("PUT", "/v1/recipients/aiko", whole).must(t, 201)
	if made.header.Get("Location") != "/v1/recipients/aiko" || made.at(t, "canceled") != float64(0) || made.at(t, "recipient") != "aiko" {
		t.Errorf("%v %s", made.header, made.text)
	}
	got := b.send("GET", "/v1/recipients/aiko", "").must(t, 200)
	for place, want := range map[string]any{"time_zone": "Asia/Tokyo", "addresses.sms": "+819012345678", "attributes.first_name": "Aiko", "attributes.n": 1500., "opt_outs.all": false} {
		if v := got.at(t, anyOf(strings.Split(place, "."))...); v != want {
			t.Errorf("%s is %v, want %v", place, v, want)
		}
	}
	if text := fmt.Sprint(got.at(t, "opt_outs"), got.at(t, "limits")); text != "map[all:false categories:[marketing] channels:[sms]] [map[limit:20 rule:per-day] map[limit:0 rule:another]]" {
		t.Error(text)
	}

	b.send("PUT", "/v1/recipients/aiko", `{"opt_outs":{"all":true}}`).must(t, 200)
	got = b.send("GET", "/v1/recipients/aiko", "").must(t, 200)
	if text := fmt.Sprint(got.at(t, "time_zone"), got.at(t, "addresses"), got.at(t, "limits"), got.at(t, "attributes"), got.at(t, "opt_outs")); text !=
		"<nil> map[] [] map[] map[all:true categories:[] channels:[]]" {
		t.Error(text)
	}

	// The answer of GET can be sent back, and null is like an absent member.
	b.send("PUT", "/v1/recipients/aiko", got.text).must(t, 200)
	if again := b.send("GET", "/v1/recipients/aiko", "").must(t, 200); fmt.Sprint(again.at(t, "opt_outs"), again.at(t, "created_at")) != fmt.Sprint(got.at(t, "opt_outs"), got.at(t, "created_at")) {
		t.Error(again.text)
	}
	b.send("PUT", "/v1/recipients/bert", got.text).must(t, 422, "invalid-request")
	b.send("PUT", "/v1/recipients/aiko", `{"time_zone":null,"addresses":null,"opt_outs":null,"limits":null,"attributes":null}`).must(t, 200)
	got = b.send("GET", "/v1/recipients/aiko", "").must(t, 200)
	if text := fmt.Sprint(got.at(t, "time_zone"), got.at(t, "addresses"), got.at(t, "limits"), got.at(t, "attributes"), got.at(t, "opt_outs")); text !=
		"<nil> map[] [] map[] map[all:false categories:[] channels:[]]" {
		t.Error(text)
	}

	b.send("PUT", "/v1/recipients/aiko", `{"opt_outs":{"all":true}}`).must(t, 200)
	strange := "a/b c?ü"
	b.send("PUT", "/v1/recipients/"+url.PathEscape(strange), `{}`).must(t, 201)
	if got := b.send("GET", "/v1/recipients/"+url.PathEscape(strange), "").must(t, 200).at(t, "recipient"); got != strange {
		t.Error(got)
	}
	b.send("PUT", "/v1/recipients/import", `{}`).must(t, 201)
	var ids []string
	for page, token := 0, ""; ; page++ {
		r := b.send("GET", "/v1/recipients?page_size=1&page_token="+token, "").must(t, 200)
		for _, one := range r.at(t, "recipients").([]any) {
			ids = append(ids, one.(map[string]any)["recipient"].(string))
		}
		if token = r.at(t, "next_page_token").(string); token == "" {
			break
		}
		b.send("GET", "/v1/recipients?opted_out=true&page_token="+token, "").must(t, 422, "invalid-request")
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{strange, "aiko", "import"}) {
		t.Errorf("%q", ids)
	}
	out := b.send("GET", "/v1/recipients?opted_out=true", "").must(t, 200).at(t, "recipients").([]any)
	if len(out) != 1 || out[0].(map[string]any)["recipient"] != "aiko" {
		t.Errorf("opted out: %v", out)
	}
}

func anyOf(parts []string) []any {
	all := make([]any, len(parts))
	for i, p := range parts {
		all[i] = p
	}
	return all
}

// TestRecipients_Faults: the answer lists every error, with its location.
func TestRecipients_Faults(t *testing.T) {
	b := setup(t)
	r := b.send("PUT", "/v1/recipients/"+strings.Repeat("x", 129)+"?a=1", `{"time_zone":"Europe/Berln","addresses":{"fax":"1","sms":"","push":7},
		"opt_outs":{"all":"yes","channels":["sms","fax","sms",""],"categories":[7],"other":1},
		"limits":[{"rule":"Per Day","limit":1.5},{"limit":-1},{"rule":"a","limit":100001},{"rule":"b","limit":1},{"rule":"b","limit":2}],
		"attributes":[],"local_time":"x"}`).must(t, 422, "invalid-request")
	places := map[string]string{}
	for _, one := range r.at(t, "errors").([]any) {
		e := one.(map[string]any)
		places[e["location"].(string)] = e["message"].(string)
	}
	for place, message := range map[string]string{
		"query.a": "unexpected", "path.id": "at most 128", "body.time_zone": "Europe/Berlin", "body.addresses.fax": "the channels are: push, sms",
		"body.addresses.sms": "must not be empty", "body.addresses.push": "must be a string", "body.opt_outs.all": "true or false",
		"body.opt_outs.channels[1]": "the channels are: push, sms", "body.opt_outs.channels[2]": "twice", "body.opt_outs.channels[3]": "must not be empty", "body.opt_outs.categories[0]": "must be a string",
		"body.opt_outs.other": "unexpected", "body.limits[0].rule": "must be the name of a rule", "body.limits[0].limit": "whole number", "body.limits[1].rule": "is required",
		"body.limits[1].limit": "from 0 to 100000", "body.limits[2].limit": "from 0 to 100000", "body.limits[4].rule": "twice", "body.attributes": "must be an object",
		"body.local_time": "unexpected",
	} {
		if !strings.Contains(places[place], message) {
			t.Errorf("%s: %q, want %q", place, places[place], message)
		}
		delete(places, place)
	}
	if len(places) > 0 {
		t.Errorf("also %v", places)
	}
	for _, body := range []string{
		`{"attributes":{"a":"\u0000"}}`, `{"attributes":{"\u0000":1}}`, `{"attributes":{"a":"\ud800"}}`, `{"attributes":{"a":1e400}}`, `{"attributes":{"a":1e-99999999}}`,
		`{"attributes":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, `{"attributes":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`,
		`{"opt_outs":{"channels":["fax"]}}`, `{"addresses":[]}`, `{"limits":{}}`, `{"time_zone":"EST5"}`, `{"time_zone":7}`,
	} {
		b.send("PUT", "/v1/recipients/a", body).must(t, 422, "invalid-request")
	}
	for _, body := range []string{`{"attributes":{"a":"\\u0000","b":"\"","c":"\\\\\"","d":-1.5e-300,"e":"\ud83d\ude00"}}`, `{"time_zone":""}`} {
		if r := b.send("PUT", "/v1/recipients/a", body); r.status/100 != 2 {
			t.Errorf("%s: %s", body, r.text)
		}
	}
}

// TestRecipients_OptOutCancels: what was scheduled and is not wanted any more is canceled, and nothing else.
func TestRecipients_OptOutCancels(t *testing.T) {
	b := setup(t)
	hook := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/h","events":["push.canceled"]}`).must(t, 201).at(t, "id").(string)
	submit := func(recipient, channel, category string, in time.Duration) string {
		return b.send("POST", "/v1/pushes", pushBody(recipient, b.in(in), `,"channel":"`+channel+`","category":"`+category+`"`)).must(t, 201).at(t, "id").(string)
	}
	sms, news := submit("aiko", "sms", "", time.Hour), submit("aiko", "push", "news", 40*24*time.Hour)
	kept, other := submit("aiko", "push", "", 3*time.Hour), submit("bert", "sms", "news", time.Hour)
	r := b.send("PUT", "/v1/recipients/aiko", `{"opt_outs":{"channels":["sms"],"categories":["news"]}}`).must(t, 201)
	if r.at(t, "canceled") != float64(2) {
		t.Error(r.text)
	}
	for id, want := range map[string]string{sms: "canceled", news: "canceled", kept: "scheduled", other: "scheduled"} {
		p := b.send("GET", "/v1/pushes/"+id, "").must(t, 200)
		reason, _ := p.body["last_error"].(string)
		if p.at(t, "status") != want || (want == "canceled") != (reason == "opted-out") {
			t.Errorf("want %s: %s", want, p.text)
		}
	}
	if n := len(b.send("GET", "/v1/webhooks/"+hook+"/deliveries", "").must(t, 200).at(t, "deliveries").([]any)); n != 2 {
		t.Errorf("%d events", n)
	}
	if n := query[int](b, `SELECT count(*) FROM live`); n != 2 {
		t.Errorf("%d pushes wait", n)
	}
	// The places are free again, for what is wanted.
	b.send("POST", "/v1/pushes", pushBody("aiko", b.in(time.Hour), `,"channel":"sms"`)).must(t, 409, "opted-out")
	submit("aiko", "push", "", time.Hour)
	if r := b.send("PUT", "/v1/recipients/aiko", `{"opt_outs":{"all":true}}`).must(t, 200); r.at(t, "canceled") != float64(2) {
		t.Error(r.text)
	}
}

// TestRecipients_Scopes: recipients:write includes recipients:read, and not the reverse.
func TestRecipients_Scopes(t *testing.T) {
	b := setup(t)
	_, reader := b.newTenant("reader", push.ScopeRecipientsRead)
	_, writer := b.newTenant("writer", push.ScopeRecipientsWrite)
	b.send("PUT", "/v1/recipients/a", `{}`, "Authorization", "Bearer "+reader).must(t, 403, "forbidden")
	b.send("GET", "/v1/recipients", "", "Authorization", "Bearer "+reader).must(t, 200)
	b.send("PUT", "/v1/recipients/a", `{}`, "Authorization", "Bearer "+writer).must(t, 201)
	b.send("GET", "/v1/recipients/a", "", "Authorization", "Bearer "+writer).must(t, 200)
	b.send("GET", "/v1/pushes", "", "Authorization", "Bearer "+writer).must(t, 403, "forbidden")
}

// TestRecipients_Address: recipients are listed by an address on any channel, in upper or lower case, page by page.
func TestRecipients_Address(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/anna", `{"addresses":{"sms":"Anna@Example.com"}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/bert", `{"addresses":{"push":"anna@example.com"},"opt_outs":{"all":true}}`).must(t, 201)
	b.send("PUT", "/v1/recipients/carl", `{"addresses":{"sms":"carl@example.com"}}`).must(t, 201)
	for query, want := range map[string]string{
		"address=anna@example.com": "anna bert", "address=ANNA@example.com&opted_out=true": "bert", "address=nobody@example.com": "", "address=anna": "",
	} {
		var got []string
		for _, one := range b.send("GET", "/v1/recipients?"+query, "").must(t, 200).at(t, "recipients").([]any) {
			got = append(got, one.(map[string]any)["recipient"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	page := b.send("GET", "/v1/recipients?page_size=1&address=anna@example.com", "").must(t, 200)
	rest := b.send("GET", "/v1/recipients?page_size=1&address=anna@example.com&page_token="+page.at(t, "next_page_token").(string), "").must(t, 200)
	if all := rest.at(t, "recipients").([]any); len(all) != 1 || all[0].(map[string]any)["recipient"] != "bert" {
		t.Errorf("the second page is %v", all)
	}
	if other := b.send("GET", "/v1/recipients?address=anna@example.com", "", "Authorization", "Bearer "+b.other).must(t, 200).at(t, "recipients").([]any); len(other) != 0 {
		t.Errorf("another tenant sees %v", other)
	}
}

// TestCheck_OptedOut: no time is offered to a recipient who has opted out.
func TestCheck_OptedOut(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/anna", `{"opt_outs":{"all":true}}`).must(t, 201)
	check := b.send("POST", "/v1/quota/check", `{"recipient":"anna","send_at":"`+b.in(time.Hour)+`"}`).must(t, 200)
	quota := b.send("GET", "/v1/recipients/anna/quota", "").must(t, 200)
	for _, r := range []reply{check, quota} {
		if r.at(t, "allowed") != false || r.at(t, "next_available_at") != nil {
			t.Errorf("%s", r.text)
		}
	}
}
