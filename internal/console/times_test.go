package console

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// clocks returns the local time in a zone as the value of a form field.
func clocks(t *testing.T, at time.Time, zone string) string {
	t.Helper()
	in := frame.LoadZone(zone)
	if in == nil {
		t.Fatalf("there is no zone %s", zone)
	}
	return at.In(in).Format("2006-01-02T15:04:05")
}

// inBrowser has the pages drawn for a browser in a zone.
func (b *bundle) inBrowser(zone string) { b.cookies["sendquota_tz"] = zone }

// TestTimes_FilterAsDrawn: the time of a filter is read in the zone that its form named, even if the page shows another one by then. The
// answer has it in the zone that it shows.
func TestTimes_FilterAsDrawn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.api.Recipients.Put(t.Context(), "tokyo", client.NewRecipient{TimeZone: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	one := b.submit("tokyo", 24*time.Hour)
	at := one.SendAt.Truncate(time.Second)
	typed, shown := clocks(t, at, "America/New_York"), clocks(t, at, "Asia/Tokyo")
	b.inBrowser("America/New_York")
	for path, names := range map[string][]string{"/console/why": {"at"}, "/console/pushes": {"from", "until"}} {
		form := b.get(path + "?tz=recipient")
		form.has(t, 200, ">Time zone: America/New_York</span>")
		query := url.Values{"recipient": {"tokyo"}, "tz": {"recipient"}, "zone": {hidden(t, form, "zone")}}
		for _, name := range names {
			query.Set(name, typed)
		}
		if path == "/console/pushes" {
			query.Set("until", clocks(t, at.Add(time.Second), "America/New_York"))
		}
		answer := b.get(path + "?" + query.Encode())
		answer.has(t, 200, "/console/pushes/"+one.ID, `name="`+names[0]+`" type="datetime-local" value="`+shown+`"`, ">Time zone: Asia/Tokyo</span>", `name="zone" value="Asia/Tokyo"`)
		query.Set("tz", "utc") // as the link of the page does
		b.get(path+"?"+query.Encode()).has(t, 200, "/console/pushes/"+one.ID, `value="`+clocks(t, at, "UTC")+`"`, ">Time zone: UTC</span>")
		query.Set(names[0], "never")
		b.get(path+"?"+query.Encode()).has(t, 422, `value="never"`, ">Time zone: America/New_York</span>", `name="zone" value="America/New_York"`)
	}
	query := url.Values{"recipient": {"tokyo"}, "from": {typed}, "until": {clocks(t, at.Add(time.Second), "America/New_York")}, "zone": {"America/New_York"}, "tz": {"utc"}}
	bulk := regexp.MustCompile(`href="(/console/pushes/bulk[^"]*)"`).FindStringSubmatch(b.get("/console/pushes?" + query.Encode()).Body)
	if bulk == nil {
		t.Fatal("no change of all is offered")
	}
	b.get(bulk[1]).has(t, 200, `name="from" value="`+frame.RFC3339(at)+`"`)
	page := b.get("/console/pushes?tz=mine&zone=Mars/X&from=" + typed)
	page.has(t, 200, `value="`+typed+`"`, `name="zone" value="America/New_York"`)

	// A link from another page has a time to a fraction of a second, which no field can show.
	b.get("/console/pushes?from="+url.QueryEscape(at.Add(time.Millisecond).Format(time.RFC3339Nano))).has(t, 200, `value="`+clocks(t, at, "America/New_York")+`"`)

	// An ambiguous local time keeps the zone of its input.
	b.inBrowser("Europe/Berlin")
	kept := 0
	for _, typed := range []string{"2026-10-25T00:30", "2026-10-25T01:30"} {
		page := b.get("/console/pushes?zone=UTC&from=" + typed).Body
		if asTyped := strings.Contains(page, `value="`+typed+`"`); asTyped != strings.Contains(page, `name="zone" value="UTC"`) {
			t.Error("a time is shown in another zone than the form says")
		} else if asTyped {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("of two times that the clocks show alike, %d are shown as they were typed", kept)
	}
}

// TestTimes_FormAsDrawn: so is the time of a form, if the zone of the browser has changed since. A form that is shown again shows what was
// typed, and in which zone.
func TestTimes_FormAsDrawn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	b.inBrowser("Europe/Berlin")
	form := b.get("/console/pushes/new")
	form.has(t, 200, "Time zone: Europe/Berlin")
	fields := []string{"zone", hidden(t, form, "zone"), "recipient", "anna", "channel", "push", "message.title", "Hello", "send_at", clocks(t, at, "Europe/Berlin")}
	b.inBrowser("America/New_York")
	again := b.post("/console/pushes/new", append(fields, "do", "submit", "message", "{")...)
	again.has(t, 422, "Time zone: Europe/Berlin", `value="`+clocks(t, at, "Europe/Berlin")+`"`, `name="zone" value="Europe/Berlin"`)
	b.follow(b.post("/console/pushes/new", append(fields, "do", "submit", "once", "one")...)).has(t, 200, `datetime="`+frame.RFC3339(at)+`"`)
	free := at.Add(time.Minute)
	b.post("/console/pushes/new", append(fields, "next_free", frame.RFC3339(free))...).has(t, 200, `name="send_at" type="datetime-local" value="`+clocks(t, free, "Europe/Berlin")+`"`, `datetime="`+frame.RFC3339(free)+`"`)
	b.get("/console/pushes/new").has(t, 200, "Time zone: America/New_York", `name="zone" value="America/New_York"`)
}

// TestTimes_KeepsExact: who changes something else of a draft leaves its time as it is, wherever the browser is by then, also where the
// clocks show the time twice.
func TestTimes_KeepsExact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := time.Date(time.Now().Year()+1, 11, 1, 6, 30, 0, 0, time.UTC) // a day on which the clocks of New York may go back
	for at.Weekday() != time.Sunday {
		at = at.AddDate(0, 0, 1)
	}
	draft, err := b.api.Campaigns.Create(t.Context(), "", client.NewCampaign{Name: "Sale", SendAt: at, Message: client.Message{"title": "Hi"}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/console/campaigns/" + draft.ID + "/when"
	for _, zones := range [][2]string{{"Europe/Berlin", "America/New_York"}, {"America/New_York", "Europe/Berlin"}} {
		b.inBrowser(zones[0])
		form := b.get(path)
		form.has(t, 200, "Date and time ("+zones[0]+")", `value="`+clocks(t, at, zones[0])+`"`)
		fields := []string{"zone", hidden(t, form, "zone"), "when", "at", "send_at", clocks(t, at, zones[0]), "send_at_exact", hidden(t, form, "send_at_exact"), "updated_at", hidden(t, form, "updated_at"), "on_conflict", "reject"}
		b.inBrowser(zones[1])
		if answer := b.post(path, append(fields, "spread", "30m")...); answer.Status != 303 {
			t.Fatalf("%d %s", answer.Status, answer.text())
		}
		if now, err := b.api.Campaigns.Get(t.Context(), draft.ID); err != nil || !now.SendAt.Equal(at) {
			t.Errorf("%v: it is sent at %s instead of %s (%v)", zones, now.SendAt, at, err)
		}
		seen := hidden(t, b.get(path), "updated_at")
		fields[9] = seen
		b.post(path, append(fields, "when", "start", "spread", "x")...).has(t, 422, "Date and time ("+zones[0]+")", `value="`+clocks(t, at, zones[0])+`"`, `name="zone" value="`+zones[0]+`"`)
	}
}

// TestForms_SayTheirZone checks that each form with a time has the zone of its times.
func TestForms_SayTheirZone(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*/templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	forms := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range regexp.MustCompile(`(?s)<form\b.*?</form>`).FindAllString(string(text), -1) {
			if !strings.Contains(form, "datetime-local") && !strings.Contains(form, "_exact") {
				continue
			}
			if forms++; strings.Count(form, `{{template "zone" $}}`) != 1 {
				t.Errorf("%s: a form does not say the zone of its times once: %s", name, form)
			}
		}
	}
	if forms < 15 {
		t.Errorf("%d forms were checked", forms)
	}
}
