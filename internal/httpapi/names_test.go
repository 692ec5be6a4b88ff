package httpapi

import (
	"strings"
	"testing"
	"time"
)

// TestNames: names of categories, channels and rules are compared without case and the space around them, and kept in lower case: what
// recipient opts out of, or a rule forbids, in one spelling applies to all.
func TestNames(t *testing.T) {
	b := setup(t)
	day := time.Now().UTC().AddDate(0, 0, 2).Truncate(24 * time.Hour).Add(12 * time.Hour)
	at := func(d time.Duration) string { return `"send_at":"` + day.Add(d).Format(time.RFC3339) + `"` }
	b.send("PUT", "/v1/policy", `{"rules":[{"name":"Per-Day","limit":3,"window":"24h","categories":[" Marketing "]}],"categories":{"OTP ":{"bypass":true},"News":{"reserve":{"PER-DAY":1}}},
		"quiet_hours":[{"name":"Noon","from":"14:00","until":"15:00","categories":["MARKETING"]}]}`).must(t, 200)
	got := b.send("GET", "/v1/policy", "").must(t, 200).text
	for _, want := range []string{`"per-day"`, `"marketing"`, `"otp"`, `"news"`, `"reserve":{"per-day":1}`, `"noon"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	b.send("PUT", "/v1/policy", `{"categories":{"OTP":{"bypass":true},"otp":{}}}`).must(t, 422, "invalid-request")

	push := func(recipient, category string, d time.Duration) string {
		return `{"recipient":"` + recipient + `","channel":" Push","category":"` + category + `","message":{"body":"x"},` + at(d) + `}`
	}
	if r := b.send("POST", "/v1/pushes", push("a", " Marketing", 0)).must(t, 201); r.at(t, "category") != "marketing" || r.at(t, "channel") != "push" {
		t.Error(r.text)
	}
	b.send("POST", "/v1/pushes", push("a", "MARKETING", time.Minute)).must(t, 201)
	b.send("POST", "/v1/pushes", push("a", "marketing", 2*time.Minute)).must(t, 409, "quota-exceeded")
	b.send("POST", "/v1/pushes", push("q", "Marketing", 150*time.Minute)).must(t, 409, "quiet-hours")
	if r := b.send("POST", "/v1/quota/check", `{"recipient":"a","category":"Marketing",`+at(3*time.Minute)+`}`).must(t, 200); r.at(t, "allowed") != false {
		t.Error(r.text)
	}

	b.send("PUT", "/v1/recipients/b", `{"opt_outs":{"categories":[" MARKETING"],"channels":["SMS"]},"addresses":{"Push":"token"},"limits":[{"rule":"Per-Day","limit":1}]}`).must(t, 201)
	b.send("POST", "/v1/pushes", push("b", "marketing", 0)).must(t, 409, "opted-out")
	if r := b.send("GET", "/v1/recipients/b", "").must(t, 200); !strings.Contains(r.text, `"categories":["marketing"]`) || !strings.Contains(r.text, `"push":"token"`) || !strings.Contains(r.text, `"rule":"per-day"`) {
		t.Error(r.text)
	}
	b.send("PUT", "/v1/recipients/c", `{"opt_outs":{"categories":["x","X"]}}`).must(t, 422, "invalid-request")
	if r := b.send("GET", "/v1/pushes?category=MARKETING&channel=PUSH", "").must(t, 200); strings.Contains(r.text, `"pushes":[]`) {
		t.Error(r.text)
	}
	if r := b.send("POST", "/v1/campaigns", `{"name":"N","category":"News ","channel":"PUSH","message":{"body":"x"}}`).must(t, 201); r.at(t, "category") != "news" || r.at(t, "channel") != "push" {
		t.Error(r.text)
	}
}
