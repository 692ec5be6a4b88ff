package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

// capacityHour returns the number of recipients with a place at an hour of an answer.
func capacityHour(t *testing.T, r reply, at time.Time) float64 {
	t.Helper()
	for _, h := range r.at(t, "hours").([]any) {
		if hour := h.(map[string]any); hour["at"] == at.UTC().Format(time.RFC3339) {
			return hour["free"].(float64)
		}
	}
	t.Fatalf("%s is not in %s", at, r.text)
	return 0
}

// TestCapacity: each hour counts the recipients whose rules let them have it at their time, each day those who have one hour of it.
func TestCapacity(t *testing.T) {
	b := setup(t, quota.Rule{Name: "per-hour", Limit: 1, Window: time.Hour})
	start := b.now().Add(48 * time.Hour).Truncate(24 * time.Hour)
	b.send("POST", "/v1/pushes", pushBody("bert", start.Add(9*time.Hour+30*time.Minute).Format(time.RFC3339), "")).must(t, 201)
	b.send("PUT", "/v1/recipients/dora", `{"opt_outs":{"categories":["marketing"]}}`).must(t, 201)
	id := b.campaign(`{"channel":"push","category":"marketing","send_at":"` + start.Format(time.RFC3339) + `","message":{"body":"Hi {{ name }}"}}`)
	path := "/v1/campaigns/" + id + "/capacity?from=" + start.Format(time.RFC3339) + "&until=" + start.Add(24*time.Hour).Format(time.RFC3339)
	b.send("GET", path, "").must(t, 409, "campaign-state")
	lines := `{"recipient":"anna","name":"Anna"}
{"recipient":"bert","name":"Bert"}
{"recipient":"carl"}
{"recipient":"dora","name":"Dora"}
`
	b.send("PUT", "/v1/campaigns/"+id+"/audience", lines, "Content-Type", "application/x-ndjson").must(t, 200)
	before := query[int](b, `SELECT count(*) FROM pushes`)
	r := b.send("GET", path, "").must(t, 200)
	for member, want := range map[string]float64{"recipients": 4, "sample": 4, "opted_out": 1, "invalid": 1} {
		if r.at(t, member) != want {
			t.Errorf("%s is %v, want %v", member, r.at(t, member), want)
		}
	}
	for hour, want := range map[time.Duration]float64{8: 2, 9: 1, 10: 1, 11: 2, 23: 2} {
		if got := capacityHour(t, r, start.Add(hour*time.Hour)); got != want {
			t.Errorf("at %d %v have a place, want %v", hour, got, want)
		}
	}
	if hours := r.at(t, "hours").([]any); len(hours) != 24 {
		t.Errorf("%d hours", len(hours))
	}
	if days := r.at(t, "days").([]any); len(days) != 1 || days[0].(map[string]any)["free"] != 2.0 || days[0].(map[string]any)["day"] != start.Format(time.DateOnly) {
		t.Errorf("%v", days)
	}
	if days := b.send("GET", path+"&time_zone=Asia/Tokyo", "").must(t, 200).at(t, "days").([]any); len(days) != 2 {
		t.Errorf("%v", days)
	}
	if r := b.send("GET", path+"&sample=2", "").must(t, 200); r.at(t, "sample") != 2.0 || r.at(t, "recipients") != 4.0 {
		t.Error(r.text)
	}
	if after := query[int](b, `SELECT count(*) FROM pushes`); after != before {
		t.Errorf("%d pushes were booked", after-before)
	}
}

// TestCapacity_Simulated: it counts at each hour as many as a simulation accepts there.
func TestCapacity_Simulated(t *testing.T) {
	b := setup(t, quota.Rule{Name: "per-hour", Limit: 1, Window: time.Hour}, quota.Rule{Name: "per-day", Limit: 2, Window: 24 * time.Hour})
	start := b.now().Add(48 * time.Hour).Truncate(24 * time.Hour)
	var audience strings.Builder
	for i := range 40 {
		name := "user-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		audience.WriteString("\n" + name)
		for n := range i % 3 {
			b.send("POST", "/v1/pushes", pushBody(name, start.Add(time.Duration(7*i+111*n)*13*time.Minute/3).Format(time.RFC3339), ""))
		}
	}
	id := b.campaign(`{"channel":"push","spread":"2h","message":{"body":"Hi"}}`)
	b.audience(id, "recipient"+audience.String())
	r := b.send("GET", "/v1/campaigns/"+id+"/capacity?from="+start.Format(time.RFC3339)+"&until="+start.Add(24*time.Hour).Format(time.RFC3339), "").must(t, 200)
	least := 40.0
	for hour := range 24 {
		at := start.Add(time.Duration(hour) * time.Hour)
		sum := b.send("POST", "/v1/campaigns/"+id+"/simulate", `{"send_at":"`+at.Format(time.RFC3339)+`"}`).must(t, 200)
		free := capacityHour(t, r, at)
		if least = min(least, free); sum.at(t, "accepted") != free {
			t.Errorf("at %d %v have a place, and a simulation accepts %v", hour, free, sum.at(t, "accepted"))
		}
	}
	if least == 40 {
		t.Error("all have a place at all hours")
	}
}

// TestCapacity_Refused: invalid requests get their problems.
func TestCapacity_Refused(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{"body":"Hi"}}`)
	b.audience(id, "recipient\nanna\n")
	path := "/v1/campaigns/" + id + "/capacity"
	if r := b.send("GET", path, "").must(t, 200); len(r.at(t, "hours").([]any)) < 31*24-1 {
		t.Error(r.text)
	}
	now := b.now()
	for query, field := range map[string]string{
		"?from=yesterday": "query.from", "?time_zone=Mars/Olympus": "query.time_zone", "?sample=0": "query.sample", "?sample=5001": "query.sample", "?days=3": "query.days",
		"?until=" + now.Add(63*24*time.Hour).UTC().Format(time.RFC3339):                                                                    "query.until",
		"?from=" + now.Add(-48*time.Hour).UTC().Format(time.RFC3339) + "&until=" + now.Add(-24*time.Hour).UTC().Format(time.RFC3339):       "query.until",
		"?from=" + now.Add(399*24*time.Hour).UTC().Format(time.RFC3339) + "&until=" + now.Add(400*24*time.Hour).UTC().Format(time.RFC3339): "query.until",
	} {
		if r := b.send("GET", path+query, "").must(t, 422, "invalid-request"); !strings.Contains(r.text, `"`+field+`"`) {
			t.Errorf("%s: %s", query, r.text)
		}
	}
	b.send("GET", "/v1/campaigns/"+rest.ExampleID+"/capacity", "").must(t, 404, "not-found")
	b.send("GET", path, "", "Authorization", "Bearer "+b.other).must(t, 404, "not-found")
	_, key, err := b.store.CreateKey(t.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: []string{push.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	b.send("GET", path, "", "Authorization", "Bearer "+key).must(t, 403)
	b.exec(`UPDATE campaigns SET status = 'running', started_at = clock_timestamp()`)
	if r := b.send("GET", path, "").must(t, 409, "campaign-state"); !strings.Contains(r.text, "is only available while it is a draft") {
		t.Error(r.text)
	}
}
