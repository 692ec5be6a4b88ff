package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// put puts a policy in force.
func (b *bundle) put(policy string) {
	b.t.Helper()
	b.send("PUT", "/v1/policy", policy).must(b.t, 200)
}

// day is a day at least a few days ahead, in UTC.
func (b *bundle) day() time.Time { return b.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 4) }

func rfc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TestQuietHours: they refuse, or move by themselves what is submitted alone, in a batch, or moved into them.
func TestQuietHours(t *testing.T) {
	b := setup(t)
	const night = `{"rules":[{"name":"per-minute","limit":1,"window":"1m"}],"quiet_hours":[{"name":"night","from":"22:00","until":"08:00","zone":"Asia/Tokyo","categories":["marketing"],"action":%q}]}`
	midnight := b.day().Add(-9 * time.Hour) // of Tokyo
	inside, morning, from := rfc(midnight.Add(3*time.Hour)), midnight.Add(8*time.Hour), midnight.Add(-2*time.Hour)
	marketing := func(at, more string) string { return pushBody("aiko", at, `,"category":"marketing"`+more) }

	b.put(fmt.Sprintf(night, "reject"))
	no := b.send("POST", "/v1/pushes", marketing(inside, "")).must(t, 409, "quiet-hours")
	if no.at(t, "violations", 0, "rule") != "night" || no.at(t, "next_available_at") != rfc(morning) || no.at(t, "violations", 0, "window_seconds") != 36000.0 || no.at(t, "violations", 0, "until") != rfc(morning) {
		t.Errorf("refused with %s", no.text)
	}
	for at, want := range map[time.Time]int{from.Add(-time.Second): 201, from: 409, morning.Add(-time.Second): 409, morning: 201} {
		if got := b.send("POST", "/v1/pushes", pushBody("edge", rfc(at), `,"category":"marketing"`)); got.status != want {
			t.Errorf("at %s: %d, want %d: %s", rfc(at), got.status, want, got.text)
		}
	}
	b.send("POST", "/v1/pushes", pushBody("other", inside, "")).must(t, 201) // of no category
	asked := b.send("POST", "/v1/pushes", marketing(inside, `,"on_conflict":"defer"`)).must(t, 201)
	if asked.at(t, "send_at") != rfc(morning) || asked.at(t, "deferred") != true {
		t.Errorf("asked to defer: %s", asked.text)
	}
	// Where a rule is broken too, both are named.
	both := b.send("POST", "/v1/pushes", pushBody("other", inside, `,"category":"marketing"`)).must(t, 409, "quota-exceeded")
	if len(both.at(t, "violations").([]any)) != 2 {
		t.Errorf("both: %s", both.text)
	}

	b.put(fmt.Sprintf(night, "defer"))
	moved := b.send("POST", "/v1/pushes", marketing(inside, "")).must(t, 201)
	if moved.at(t, "send_at") != rfc(morning.Add(time.Minute)) || moved.at(t, "requested_send_at") != inside || moved.at(t, "deferred") != true ||
		moved.at(t, "expires_at") != rfc(morning.Add(24*time.Hour+time.Minute)) {
		t.Errorf("moved by itself: %s", moved.text)
	}
	batch := b.send("POST", "/v1/pushes/batch", `{"pushes":[`+marketing(inside, "")+`,`+marketing(rfc(morning.Add(3*time.Minute)), "")+`]}`).must(t, 200)
	if batch.at(t, "results", 0, "push", "send_at") != rfc(morning.Add(2*time.Minute)) || batch.at(t, "results", 1, "status") != 201.0 {
		t.Errorf("in a batch: %s", batch.text)
	}
	b.send("POST", "/v1/pushes", marketing(inside, `,"expires_at":"`+rfc(morning)+`"`)).must(t, 409, "quiet-hours") // it would be too late
	id := moved.at(t, "id").(string)
	again := b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+inside+`"}`).must(t, 200)
	if again.at(t, "send_at") != rfc(morning.Add(time.Minute)) || again.at(t, "requested_send_at") != inside {
		t.Errorf("moved into them: %s", again.text)
	}
	if free := b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+rfc(morning.Add(2*time.Hour))+`"}`).must(t, 200); free.at(t, "deferred") != false {
		t.Errorf("moved out of them: %s", free.text)
	}
	check := b.send("POST", "/v1/quota/check", `{"recipient":"aiko","category":"marketing","send_at":"`+inside+`"}`).must(t, 200)
	if check.at(t, "allowed") != false || check.at(t, "violations", 0, "rule") != "night" {
		t.Errorf("check: %s", check.text)
	}
	slots := b.send("GET", "/v1/recipients/aiko/slots?category=marketing&from="+rfc(midnight)+"&until="+rfc(midnight.Add(time.Hour)), "").must(t, 200)
	if slots.at(t, "blocked", 0, "rules", 0) != "night" || slots.at(t, "blocked", 0, "from") != rfc(from) || slots.at(t, "blocked", 0, "until") != rfc(morning) {
		t.Errorf("slots: %s", slots.text)
	}
}

// TestCategories: bypass is refused by nothing, what does not count takes no place, and reserved places are for one category.
func TestCategories(t *testing.T) {
	b := setup(t)
	b.put(`{"rules":[{"name":"per-day","limit":3,"window":"24h"},{"name":"never","limit":0,"window":"1m","categories":["banned"]}],
		"quiet_hours":[{"name":"always","from":"00:00","until":"23:59"}],
		"categories":{"alarm":{"bypass":true},"note":{"counts":false},"receipts":{"reserve":{"per-day":2}}}}`)
	minute := b.day().Add(24*time.Hour - time.Minute) // the only one that is not quiet
	submit := func(who, category string, at time.Time) int {
		t.Helper()
		return b.send("POST", "/v1/pushes", pushBody(who, rfc(at), `,"category":"`+category+`"`)).status
	}
	for _, row := range []struct {
		name string
		got  []int
		want string
	}{
		{"bypass in quiet hours, and it counts", []int{submit("a", "alarm", minute.Add(-2*time.Hour)), submit("a", "alarm", minute.Add(-time.Hour)), submit("a", "alarm", minute),
			submit("a", "alarm", minute), submit("a", "receipts", minute)}, "[201 201 201 201 409]"},
		{"what does not count is judged", []int{submit("b", "note", minute), submit("b", "note", minute), submit("b", "note", minute), submit("b", "note", minute),
			submit("b", "", minute), submit("b", "note", minute), submit("b", "receipts", minute), submit("b", "receipts", minute), submit("b", "note", minute)},
			"[201 201 201 201 201 409 201 201 409]"},
		{"one place is left to others", []int{submit("c", "", minute), submit("c", "other", minute), submit("c", "receipts", minute), submit("c", "receipts", minute), submit("c", "receipts", minute)},
			"[201 409 201 201 409]"},
		{"who has reserved places may use all", []int{submit("d", "receipts", minute), submit("d", "receipts", minute), submit("d", "receipts", minute), submit("d", "", minute)}, "[201 201 201 409]"},
		{"a rule for a category", []int{submit("e", "banned", minute), submit("e", "", minute)}, "[409 201]"},
	} {
		if got := fmt.Sprint(row.got); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
	usage := b.send("GET", "/v1/recipients/c/quota?category=other&at="+rfc(minute), "").must(t, 200)
	if usage.at(t, "rules", 0, "used") != 3.0 || usage.at(t, "rules", 0, "remaining") != 0.0 || usage.at(t, "allowed") != false {
		t.Errorf("quota: %s", usage.text)
	}
}

// TestCalendarRules: days follow a zone, however odd, and a full day blocks its own first second and not the first second of the next.
func TestCalendarRules(t *testing.T) {
	b := setup(t)
	for _, name := range []string{"Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"} {
		t.Run(name, func(t *testing.T) {
			loc, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			b.put(`{"rules":[{"name":"day","limit":2,"per":"day","zone":"` + name + `"}]}`)
			days := []time.Time{b.day()}
			if name == "Australia/Lord_Howe" { // and the next one that is half an hour shorter or longer
				for d := b.day(); ; d = d.AddDate(0, 0, 1) {
					y, m, n := d.Date()
					if first := time.Date(y, m, n, 0, 0, 0, 0, loc); time.Date(y, m, n+1, 0, 0, 0, 0, loc).Sub(first) != 24*time.Hour {
						days = append(days, d)
						break
					}
				}
			}
			for _, day := range days {
				y, m, d := day.Date()
				first, next := time.Date(y, m, d, 0, 0, 0, 0, loc), time.Date(y, m, d+1, 0, 0, 0, 0, loc)
				who := "walker-" + name[len(name)-4:] + first.Format(time.DateOnly)
				for _, one := range []struct {
					at   time.Time
					want int
				}{
					{next.Add(-time.Second), 201}, {first, 201}, {first, 409}, {first.Add(12 * time.Hour), 409}, {next.Add(-time.Second), 409}, {first.Add(-time.Second), 201}, {next, 201},
				} {
					got := b.send("POST", "/v1/pushes", pushBody(who, rfc(one.at), ""))
					if got.status != one.want {
						t.Errorf("%s: at %s: %d, want %d: %s", who, one.at, got.status, one.want, got.text)
					}
					if got.status == 409 && (got.at(t, "next_available_at") != rfc(next) || got.at(t, "violations", 0, "window_seconds") != next.Sub(first).Seconds() || got.at(t, "violations", 0, "per") != "day") {
						t.Errorf("%s: at %s: refused with %s", who, one.at, got.text)
					}
				}
			}
		})
	}
}

// TestShadowRules: they refuse nothing, and what they would have is counted.
func TestShadowRules(t *testing.T) {
	b := setup(t)
	b.put(`{"rules":[{"name":"real","limit":3,"window":"1h"},{"name":"trial","limit":1,"window":"1h","shadow":true},{"name":"sms","limit":0,"window":"1h","channels":["sms"],"shadow":true}]}`)
	soon := b.in(time.Hour)
	for _, more := range []string{"", `,"category":"marketing"`, `,"category":"marketing","channel":"sms"`} {
		b.send("POST", "/v1/pushes", pushBody("anna", soon, more)).must(t, 201)
	}
	b.send("POST", "/v1/pushes", pushBody("anna", soon, "")).must(t, 409, "quota-exceeded") // a real refusal is none of theirs
	b.send("POST", "/v1/pushes?validate_only=true", pushBody("bert", soon, `,"channel":"sms"`)).must(t, 201)
	one := pushBody("carl", soon, "")
	b.send("POST", "/v1/pushes/batch", `{"pushes":[`+one+`,`+one+`]}`).must(t, 200)
	b.send("POST", "/v1/pushes/batch", `{"atomic":true,"pushes":[`+one+`,`+one+`]}`).must(t, 409)
	if err := b.shadows.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.advance(2 * time.Minute)
	minute := b.now().UTC().Truncate(time.Minute)
	b.send("POST", "/v1/pushes", pushBody("dora", soon, `,"channel":"sms"`), "Idempotency-Key", "k").must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("dora", soon, `,"channel":"sms"`), "Idempotency-Key", "k").must(t, 201)
	for range 2 {
		if err := b.shadows.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := b.send("GET", "/v1/policy/shadow", "").must(t, 200)
	if want := "[map[category: rule:sms would_refuse:1] map[category:marketing rule:sms would_refuse:1] map[category: rule:trial would_refuse:1] map[category:marketing rule:trial would_refuse:2]]"; fmt.Sprint(got.at(t, "rules")) != want {
		t.Errorf("%v\nwant %s", got.at(t, "rules"), want)
	}
	if got := b.send("GET", "/v1/policy/shadow?from="+rfc(minute), "").must(t, 200); fmt.Sprint(got.at(t, "rules")) != "[map[category: rule:sms would_refuse:1]]" {
		t.Errorf("of the last minute: %s", got.text)
	}
	if got := b.send("GET", "/v1/policy/shadow", "", "Authorization", "Bearer "+b.other).must(t, 200); len(got.at(t, "rules").([]any)) != 0 {
		t.Errorf("another tenant's: %s", got.text)
	}
	b.send("GET", "/v1/policy/shadow?from="+rfc(minute)+"&until="+rfc(minute), "").must(t, 422, "invalid-request")

	b.exec(`UPDATE policy_shadows SET minute = minute - interval '91 days' WHERE rule = 'sms'`)
	if n, err := b.store.SweepShadows(t.Context(), 90*24*time.Hour, 100); err != nil || n != 2 {
		t.Errorf("%d counts swept, %v", n, err)
	}
}

// TestPolicy_Forecast: a forecast counts the violations, and changes nothing; and a change with apply has an operation.
func TestPolicy_Forecast(t *testing.T) {
	b := setup(t)
	b.put(`{"rules":[]}`)
	at := b.day()
	var ids []string
	for i := range 4 {
		ids = append(ids, b.send("POST", "/v1/pushes", pushBody("anna", rfc(at.Add(time.Duration(i)*20*time.Minute)), "")).must(t, 201).at(t, "id").(string))
	}
	const hourly = `{"rules":[{"name":"hour","limit":1,"window":"1h"},{"name":"six","limit":2,"window":"6h"}]}`
	f := b.send("PUT", "/v1/policy?forecast=true&apply=cancel", hourly, "If-Match", `"1"`).must(t, 200)
	if f.at(t, "conflicts") != 2.0 || fmt.Sprint(f.at(t, "by_rule")) != "map[hour:2]" || len(f.at(t, "first").([]any)) != 2 ||
		f.at(t, "first", 0, "push") != ids[1] || f.at(t, "first", 0, "send_at") != rfc(at.Add(20*time.Minute)) || f.at(t, "first", 1, "rule") != "hour" {
		t.Errorf("forecast: %s", f.text)
	}
	if v := b.send("GET", "/v1/policy", "").must(t, 200).at(t, "version"); v != 1.0 {
		t.Errorf("after a forecast version %v is in force", v)
	}
	back := b.send("DELETE", "/v1/policy?forecast=true", "").must(t, 200) // the file has one per minute and five per hour
	if back.at(t, "conflicts") != 0.0 || fmt.Sprint(back.at(t, "by_rule"), back.at(t, "first")) != "map[] []" {
		t.Errorf("forecast of the file: %s", back.text)
	}
	for _, apply := range []string{"reslot", "cancel"} {
		put := b.send("PUT", "/v1/policy?apply="+apply, hourly).must(t, 202)
		path := "/v1/policy/operations/" + put.at(t, "operation").(string)
		if put.header.Get("Location") != path {
			t.Errorf("Location %q", put.header.Get("Location"))
		}
		op := b.send("GET", path, "").must(t, 200)
		if op.at(t, "status") != "running" || op.at(t, "apply") != apply || op.at(t, "version") != put.at(t, "version") || op.at(t, "ended_at") != nil {
			t.Errorf("operation: %s", op.text)
		}
		b.send("DELETE", "/v1/policy?apply=new_only", "").must(t, 200)
		if op := b.send("GET", path, "").must(t, 200); op.at(t, "status") != "replaced" || op.at(t, "ended_at") == nil {
			t.Errorf("operation: %s", op.text)
		}
	}
}

// TestRefusal_Reserved: a refusal counts the sends that others may have beside reserved places.
func TestRefusal_Reserved(t *testing.T) {
	b := setup(t)
	for reserved, want := range []string{
		"already has 2 sends within 1 day", "already has 1 send, and 1 of the 2 places are reserved for another category,", "already has 0 sends, and 2 of the 2 places are reserved",
	} {
		who := fmt.Sprint("reserved-", reserved)
		b.put(fmt.Sprintf(`{"rules":[{"name":"per-day","limit":2,"window":"24h"}],"categories":{"receipts":{"reserve":{"per-day":%d}}}}`, reserved))
		for range 2 - reserved {
			b.send("POST", "/v1/pushes", pushBody(who, b.in(time.Hour), "")).must(t, 201)
		}
		if r := b.send("POST", "/v1/pushes", pushBody(who, b.in(time.Hour), "")).must(t, 409, "quota-exceeded"); !strings.Contains(r.text, want) {
			t.Errorf("%s lacks %s", r.text, want)
		}
	}
}
