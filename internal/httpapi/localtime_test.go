package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLocalTime: a push, a member of a batch, a move and a check may have a local time, which counts in its zone, or in the zone of the
// recipient's, or of the policy's.
func TestLocalTime(t *testing.T) {
	b := setup(t)
	day := b.now().UTC().AddDate(0, 0, 30).Format(time.DateOnly)
	body := func(recipient, when string) string {
		return `{"recipient":"` + recipient + `","message":{"title":"x"},` + when + `}`
	}
	at := func(clock, name string) string {
		in, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		local, err := time.ParseInLocation("2006-01-02T15:04:05", day+"T"+clock, in)
		if err != nil {
			t.Fatal(err)
		}
		return local.UTC().Format(time.RFC3339)
	}
	b.send("PUT", "/v1/recipients/tokyo", `{"time_zone":"Asia/Tokyo"}`).must(t, 201)
	local := `"local_time":"` + day + `T09:00"`
	for i, c := range []struct{ recipient, when, want string }{
		{"a", local + `,"time_zone":"Asia/Kathmandu"`, at("09:00:00", "Asia/Kathmandu")},
		{"tokyo", local, at("09:00:00", "Asia/Tokyo")},
		{"tokyo", `"local_time":"` + day + `T09:00:30","time_zone":"Australia/Lord_Howe"`, at("09:00:30", "Australia/Lord_Howe")},
		{"nobody", local, at("09:00:00", "UTC")},
	} {
		r := b.send("POST", "/v1/pushes", body(c.recipient, c.when)).must(t, 201)
		if r.at(t, "send_at") != c.want || r.at(t, "requested_send_at") != c.want {
			t.Errorf("%d: %s, want %s", i, r.text, c.want)
		}
		check := b.send("POST", "/v1/quota/check", `{"recipient":"`+c.recipient+`",`+c.when+`}`).must(t, 200)
		if check.at(t, "allowed") != false || check.at(t, "violations").([]any)[0].(map[string]any)["rule"] != "per-minute" {
			t.Errorf("%d: %s", i, check.text)
		}
	}
	batch := b.send("POST", "/v1/pushes/batch", `{"pushes":[`+body("x", local)+`,`+body("tokyo", `"local_time":"`+day+`T11:00:00"`)+`,`+body("y", local+`,"time_zone":"Mars/Base"`)+`]}`).must(t, 200)
	results := batch.at(t, "results").([]any)
	for i, want := range []string{at("09:00:00", "UTC"), at("11:00:00", "Asia/Tokyo"), "body.pushes[2].time_zone"} {
		if text := fmt.Sprint(results[i]); !strings.Contains(text, want) {
			t.Errorf("%d: %s, want %s", i, text, want)
		}
	}
	id := b.send("POST", "/v1/pushes", body("tokyo", `"send_at":"`+b.in(time.Hour)+`"`)).must(t, 201).at(t, "id").(string)
	if r := b.send("PATCH", "/v1/pushes/"+id, `{"local_time":"`+day+`T18:00"}`).must(t, 200); r.at(t, "send_at") != at("18:00:00", "Asia/Tokyo") {
		t.Error(r.text)
	}
	if r := b.send("PATCH", "/v1/pushes/"+id, `{"local_time":"`+day+`T18:00","time_zone":"America/New_York"}`).must(t, 200); r.at(t, "send_at") != at("18:00:00", "America/New_York") {
		t.Error(r.text)
	}
	// Booked pushes keep their times when the zone changes.
	b.send("PUT", "/v1/recipients/tokyo", `{"time_zone":"Europe/Berlin"}`).must(t, 200)
	if r := b.send("GET", "/v1/pushes/"+id, "").must(t, 200); r.at(t, "send_at") != at("18:00:00", "America/New_York") {
		t.Error(r.text)
	}
	// The tenant's own policy has a default zone.
	b.exec(`INSERT INTO policies (tenant_id, version, document) VALUES ($1, 1, '{"default_zone":"Pacific/Apia"}')`, b.tenant)
	b.exec(`UPDATE tenants SET policy_version = 1 WHERE id = $1`, b.tenant)
	if r := b.send("POST", "/v1/pushes", body("unknown", local)).must(t, 201); r.at(t, "send_at") != at("09:00:00", "Pacific/Apia") {
		t.Error(r.text)
	}
}

// TestLocalTime_Faults: what does not say one time is refused, with its place.
func TestLocalTime_Faults(t *testing.T) {
	b := setup(t)
	soon, local := b.in(time.Hour), b.now().UTC().AddDate(0, 0, 1).Format("2006-01-02T15:04:05")
	past := b.now().UTC().AddDate(0, 0, -1).Format("2006-01-02T15:04:05")
	id := b.send("POST", "/v1/pushes", pushBody("r", soon, "")).must(t, 201).at(t, "id").(string)
	for when, want := range map[string][]string{
		`"send_at":"` + soon + `","local_time":"` + local + `"`:          {"body.local_time", "together with send_at", local},
		`"send_at":"` + soon + `","time_zone":"UTC"`:                     {"body.time_zone", "without local_time"},
		`"time_zone":"Europe/Berlin"`:                                    {"body.time_zone", "without local_time"},
		`"local_time":"` + local + `","time_zone":"Europe/Berln"`:        {"body.time_zone", "nearest name is Europe/Berlin"},
		`"local_time":"` + local + `Z"`:                                  {"body.local_time", "without a zone"},
		`"local_time":"` + local + `.5"`:                                 {"body.local_time", "fraction"},
		`"local_time":null`:                                              {"body.local_time", "must be a string"},
		`"local_time":"` + local + `","time_zone":null`:                  {"body.time_zone", "must be a string"},
		`"local_time":"2026-02-30T09:00:00"`:                             {"body.local_time", "must be a local time"},
		`"local_time":"` + past + `","time_zone":"UTC"`:                  {"body.local_time", "in the past", past},
		`"local_time":"2099-01-01T00:00","time_zone":"America/New_York"`: {"body.local_time", "ahead", "2099-01-01T05:00:00Z"},
	} {
		for method, request := range map[string][2]string{
			"POST": {"/v1/pushes", `{"recipient":"r","message":{"title":"x"},` + when + `}`}, "PATCH": {"/v1/pushes/" + id, `{` + when + `}`},
			"check": {"/v1/quota/check", `{"recipient":"r",` + when + `}`},
		} {
			if method == "check" {
				method = "POST"
			}
			r := b.send(method, request[0], request[1]).must(t, 422, "invalid-request")
			for _, text := range want {
				if !strings.Contains(r.text, text) {
					t.Errorf("%s %s %s: %s lacks %q", method, request[0], when, r.text, text)
				}
			}
		}
	}
	b.send("PATCH", "/v1/pushes/"+id, `{}`).must(t, 422, "invalid-request")
}
