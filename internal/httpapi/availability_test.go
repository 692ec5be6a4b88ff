package httpapi

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/rest"
)

// TestAvailability: free times, and only these, are accepted, to the second; and each rule names the pushes that fill it.
func TestAvailability(t *testing.T) {
	b := setup(t, rule("per-minute", 1, time.Minute), rule("two", 2, time.Hour), rule("half", 1, 1500*time.Millisecond))
	noon := b.now().Truncate(time.Second)
	in := func(d time.Duration) string { return rest.Stamp(noon.Add(d)) }
	first := b.send("POST", "/v1/pushes", pushBody("u", in(2*time.Hour), "")).must(t, 201).at(t, "id").(string)
	second := b.send("POST", "/v1/pushes", pushBody("u", in(2*time.Hour+10*time.Minute), "")).must(t, 201).at(t, "id").(string)
	path := "/v1/recipients/u/availability?from=" + in(time.Hour) + "&until=" + in(4*time.Hour)
	r := b.send("GET", path, "").must(t, 200)
	if got, want := fmt.Sprint(r.at(t, "free")), fmt.Sprintf("[map[from:%s until:%s] map[from:%s until:%s]]",
		in(time.Hour), in(time.Hour+10*time.Minute+time.Second), in(3*time.Hour), in(4*time.Hour)); got != want {
		t.Errorf("free %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(r.at(t, "rules", 1)), fmt.Sprintf("map[blocked:[map[conflicts:[%s %s] from:%s until:%s]] limit:2 quiet:false rule:two window_seconds:3600]",
		first, second, in(time.Hour+10*time.Minute+time.Second), in(3*time.Hour)); got != want {
		t.Errorf("the rule %s, want %s", got, want)
	}
	if blocked := r.at(t, "rules", 2, "blocked").([]any); len(blocked) != 2 || r.at(t, "rules", 2, "blocked", 0, "from") != in(2*time.Hour-time.Second) || r.at(t, "rules", 2, "blocked", 0, "until") != in(2*time.Hour+2*time.Second) {
		t.Errorf("a window of a second and a half blocks %v", blocked)
	}
	for _, at := range []time.Duration{time.Hour, time.Hour + 10*time.Minute, time.Hour + 10*time.Minute + time.Second, 3*time.Hour - time.Second, 3 * time.Hour} {
		want := 409
		if at <= time.Hour+10*time.Minute || at >= 3*time.Hour {
			want = 201
		}
		b.send("POST", "/v1/pushes?validate_only=true", pushBody("u", in(at), "")).must(t, want)
	}
	r = b.send("GET", path+"&without="+second, "").must(t, 200)
	if got := len(r.at(t, "free").([]any)); got != 2 || r.at(t, "free", 1, "from") != in(2*time.Hour+time.Minute) || len(r.at(t, "bookings").([]any)) != 1 {
		t.Errorf("without a push: %s", r.text)
	}
}

// TestAvailability_NothingBefore: the past is not free, nor what is further ahead than a push may be, nor anything that the recipient
// does not want; and a span ends before its until.
func TestAvailability_NothingBefore(t *testing.T) {
	b := setup(t)
	end := b.in(time.Hour)
	r := b.send("GET", "/v1/recipients/u/availability?from="+b.in(-2*time.Hour)+"&until="+end, "").must(t, 200)
	if len(r.at(t, "free").([]any)) != 1 || r.at(t, "free", 0, "from") != r.at(t, "as_of") || r.at(t, "free", 0, "until") != end {
		t.Errorf("free of the past: %s", r.text)
	}
	r = b.send("GET", "/v1/recipients/u/availability?from="+b.in(366*24*time.Hour)+"&until="+b.in(367*24*time.Hour), "").must(t, 200)
	if len(r.at(t, "free").([]any)) != 0 || r.at(t, "time_zone") != "UTC" || len(r.at(t, "rules").([]any)) != 3 {
		t.Errorf("free beyond the horizon: %s", r.text)
	}
	b.send("POST", "/v1/pushes", pushBody("u", end, "")).must(t, 201)
	if r = b.send("GET", "/v1/recipients/u/availability?until="+end, "").must(t, 200); len(r.at(t, "bookings").([]any)) != 0 {
		t.Errorf("a booking at the end: %s", r.text)
	}
	b.send("PUT", "/v1/recipients/u", `{"time_zone": "Asia/Tokyo", "opt_outs": {"categories": ["marketing"]}}`).must(t, 201)
	r = b.send("GET", "/v1/recipients/u/availability?category=marketing", "").must(t, 200)
	if len(r.at(t, "free").([]any)) != 0 || r.at(t, "opted_out", "categories", 0) != "marketing" || r.at(t, "time_zone") != "Asia/Tokyo" {
		t.Errorf("free of what is not wanted: %s", r.text)
	}
	if r = b.send("GET", "/v1/recipients/u/availability?category=news", "").must(t, 200); len(r.at(t, "free").([]any)) == 0 {
		t.Errorf("nothing free of what is wanted: %s", r.text)
	}
}

// TestAvailability_Crowd: a rule names ten of the pushes that fill it, and counts the others.
func TestAvailability_Crowd(t *testing.T) {
	b := setup(t, rule("twelve", 12, time.Hour))
	for i := range 12 {
		b.send("POST", "/v1/pushes", pushBody("u", b.in(time.Hour+time.Duration(i)*time.Minute), "")).must(t, 201)
	}
	r := b.send("GET", "/v1/recipients/u/availability?until="+b.in(3*time.Hour), "").must(t, 200)
	blocked := r.at(t, "rules", 0, "blocked").([]any)
	if len(blocked) != 1 || len(r.at(t, "rules", 0, "blocked", 0, "conflicts").([]any)) != 10 || r.at(t, "rules", 0, "blocked", 0, "conflicts_omitted") != 2.0 {
		t.Errorf("%v", blocked)
	}
}

// TestAvailability_Refuses what it cannot answer.
func TestAvailability_Refuses(t *testing.T) {
	b := setup(t)
	for query, field := range map[string]string{
		"from=2026-12-01T09:00:00.5Z&until=2026-12-01T09:00:00.9Z": "query.until",
		"until=" + b.in(401*24*time.Hour):                          "query.until",
		"channel=fax":                                              "query.channel",
		"without=me":                                               "query.without",
		"from=" + url.QueryEscape("today"):                         "query.from",
	} {
		r := b.send("GET", "/v1/recipients/u/availability?"+query, "").must(t, 422, "invalid-request")
		if r.at(t, "errors", 0, "location") != field && r.at(t, "errors", 0, "field") != field {
			t.Errorf("%s: %s", query, r.text)
		}
	}
	if r := b.send("GET", "/v1/recipients/u/availability?without="+uuid.NewString(), "").must(t, 200); len(r.at(t, "free").([]any)) != 1 {
		t.Errorf("without a push that there is not: %s", r.text)
	}
}
