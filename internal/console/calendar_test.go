package console

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

// TestCalendarScale_Window: months begin on their first day, weeks on Monday, by the clocks of the zone.
func TestCalendarScale_Window(t *testing.T) {
	t.Parallel()
	berlin := loadZone("Europe/Berlin")
	for _, row := range []struct {
		scale           calendarScale
		at, from, until string
	}{
		{calendarMonth, "2026-10-31T23:30:00Z", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"},
		{calendarMonth, "2026-10-10T00:00:00Z", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"},
		{calendarWeek, "2026-10-25T12:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		{calendarWeek, "2026-10-19T00:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		{calendarWeek, "2026-10-18T21:59:59Z", "2026-10-11T22:00:00Z", "2026-10-18T22:00:00Z"},
	} {
		at, _ := time.Parse(time.RFC3339, row.at)
		from, until := row.scale.Window(at, berlin)
		if rfc3339(from) != row.from || rfc3339(until) != row.until {
			t.Errorf("the %s of %s is from %s until %s", row.scale, row.at, rfc3339(from), rfc3339(until))
		}
		later, _ := row.scale.Window(row.scale.Shift(at, 1, berlin), berlin)
		if !later.Equal(until) {
			t.Errorf("behind the %s of %s comes %s", row.scale, row.at, rfc3339(later))
		}
		earlier := row.scale.Shift(at, -1, berlin)
		if _, until := row.scale.Window(earlier, berlin); !until.Equal(from) {
			t.Errorf("the %s before that of %s ends at %s", row.scale, row.at, rfc3339(until))
		}
	}
}

// heatOf is a map in which each hour has as many as the hour of UTC says, and those of some weekdays none.
func heatOf(scale calendarScale, at string, in *time.Location) *heatMap {
	day, _ := time.Parse("2006-01-02", at)
	from, until := scale.Window(day, in)
	counts := map[int64]int64{}
	for h := from.UTC().Truncate(time.Hour); h.Before(until); h = h.Add(time.Hour) {
		if h.Weekday()%2 == 0 {
			counts[h.Unix()] = int64(h.Hour()*h.Day()) * 37
		}
	}
	m := newHeatMap(from, until, in, counts, 0)
	m.ID, m.Title, m.Now = "heat", "Booked ahead", day.Add(36*time.Hour)
	return m
}

// TestHeatMap_Days: every hour of UTC of the window stands in one cell, on days of 23, 24 and 25 hours, and of zones whose hours are
// no whole ones.
func TestHeatMap_Days(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		zone, day string
		hours     int
		odd       string
	}{
		{"Europe/Berlin", "2026-10-25", 25, "25 h"}, {"Europe/Berlin", "2026-03-29", 23, "23 h"}, {"Europe/Berlin", "2026-10-24", 24, ""},
		{"America/New_York", "2026-11-01", 25, "25 h"}, {"Asia/Kolkata", "2026-10-25", 24, ""}, {"America/Santiago", "2026-09-06", 23, "23 h"},
		{"Australia/Lord_Howe", "2026-10-04", 23, "23 h 30 min"}, {"Australia/Lord_Howe", "2026-04-05", 25, "24 h 30 min"}, {"UTC", "2026-10-25", 24, ""},
	} {
		in := loadZone(row.zone)
		m := heatOf(calendarMonth, row.day, in)
		seen, last := 0, time.Time{}
		for _, d := range m.Days {
			inColumns := 0
			for _, cells := range d.Columns() {
				inColumns += len(cells)
			}
			if inColumns != len(d.Hours) {
				t.Errorf("%s %s: %d of %d hours stand in a column", row.zone, d.Date, inColumns, len(d.Hours))
			}
			for _, h := range d.Hours {
				if !last.IsZero() && h.From.Sub(last) != time.Hour {
					t.Errorf("%s: %s follows %s", row.zone, h.From, last)
				}
				last = h.From
				seen++
			}
			if d.Date.Format("2006-01-02") == row.day && (len(d.Hours) != row.hours || d.Odd() != row.odd) {
				t.Errorf("%s %s has %d hours, %q", row.zone, row.day, len(d.Hours), d.Odd())
			}
		}
		if m.HalfHours() != (row.zone == "Asia/Kolkata" || row.zone == "Australia/Lord_Howe") {
			t.Errorf("%s: half hours %v", row.zone, m.HalfHours())
		}
	}
}

// TestHeatMap_SVG holds the drawings to what they were.
func TestHeatMap_SVG(t *testing.T) {
	t.Parallel()
	golden(t, "calendar/month.svg", string(heatOf(calendarMonth, "2026-11-24", time.UTC).SVG()))
	back := heatOf(calendarWeek, "2026-10-25", loadZone("Europe/Berlin"))
	back.markOver(map[int64]bool{back.Days[6].Hours[4].From.Unix(): true})
	golden(t, "calendar/week-clocks-back.svg", string(back.SVG()))
	golden(t, "calendar/week-clocks-forward.svg", string(heatOf(calendarWeek, "2026-03-29", loadZone("Europe/Berlin")).SVG()))
	golden(t, "calendar/week-half-hours.svg", string(heatOf(calendarWeek, "2026-11-24", loadZone("Asia/Kolkata")).SVG()))
}

// TestHeatStep: the largest number has the hottest level, and steps are round.
func TestHeatStep(t *testing.T) {
	t.Parallel()
	for largest, want := range map[int64]int64{0: 1, 1: 1, 5: 1, 6: 2, 10: 2, 11: 5, 26: 10, 100: 20, 101: 50, 1400: 500, 1_000_000: 200_000} {
		if got := heatStep(largest); got != want {
			t.Errorf("the step of %d is %d, want %d", largest, got, want)
		}
	}
	m := &heatMap{Step: 20, Max: 90}
	for n, want := range map[int64]int64{0: 0, 1: 1, 20: 1, 21: 2, 90: 5, 1000: 5} {
		if got := m.Level(n); got != want {
			t.Errorf("the level of %d is %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 1250: "1.2k", 9999: "9.9k", 12_345: "12k", 1_000_000: "1M", 2_540_000: "2.5M", 12_000_000: "12M"} {
		if got := shortNumber(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestPlanned: the bar of a campaign says when it is sent, by whose clocks it may be.
func TestPlanned(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name        string
		campaign    client.Campaign
		from, until time.Time
		zones       bool
	}{
		{"send time", client.Campaign{SendAt: at, Spread: "1h30m"}, at, at.Add(90 * time.Minute), false},
		{"zone", client.Campaign{LocalTime: "2026-11-24T10:00:00", TimeZone: "Europe/Berlin", Spread: "0s"}, at, at, false},
		{"everybody's zone", client.Campaign{LocalTime: "2026-11-24T10:00:00", Spread: "1h"}, at.Add(-13 * time.Hour), at.Add(14 * time.Hour), true},
		{"started without a time", client.Campaign{StartedAt: at, Spread: "1m"}, at, at.Add(time.Minute), false},
		{"when it is started", client.Campaign{Spread: "1m"}, time.Time{}, time.Time{}, false},
	} {
		if p := planned(row.campaign); !p.From.Equal(row.from) || !p.Until.Equal(row.until) || p.Zones != row.zones {
			t.Errorf("%s: from %s until %s, %v", row.name, p.From, p.Until, p.Zones)
		}
	}
}

// TestBars_SVG: drafts are links that can be dragged; the others say why they can not be.
func TestBars_SVG(t *testing.T) {
	t.Parallel()
	from, until := calendarMonth.Window(time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC), loadZone("Europe/Berlin"))
	one := func(name string, status client.CampaignStatus, day, hours int) plannedCampaign {
		p := planned(client.Campaign{Name: name, Status: status, SendAt: time.Date(2026, 10, day, 9, 0, 0, 0, time.UTC), Spread: (time.Duration(hours) * time.Hour).String()})
		p.Fixed, p.Move = fixed(p.Campaign, true), "/console/calendar/campaigns/"+name+"?a=1&b=2"
		return p
	}
	zones := planned(client.Campaign{Name: "Everywhere", Status: client.CampaignStatusDraft, LocalTime: "2026-10-27T09:00:00", Spread: "30m"})
	zones.Move = "/console/calendar/campaigns/everywhere"
	drawn := bars{
		timeAxis{From: from, Until: until, Zone: loadZone("Europe/Berlin"), Scale: scaleMonth, Now: time.Date(2026, 10, 12, 0, 0, 0, 0, time.UTC), Title: "Campaigns"},
		[]plannedCampaign{one("Autumn <sale>", client.CampaignStatusFinished, 3, 24), one("A campaign with quite a long name", client.CampaignStatusRunning, 11, 48), one("Winter", client.CampaignStatusDraft, 20, 0), zones},
	}
	golden(t, "calendar/bars.svg", string(drawn.SVG()))
}

// draft makes a draft with an audience in CSV.
func (b *bundle) draft(c client.NewCampaign, audience string) client.Campaign {
	b.t.Helper()
	if c.Message == nil {
		c.Message = client.Message{"title": "Hi"}
	}
	made, err := b.api.CreateCampaign(b.t.Context(), "", c)
	if err == nil && audience != "" {
		_, err = b.api.PutAudience(b.t.Context(), made.ID, strings.NewReader(audience), client.CSV)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// many books so many pushes of different recipients for one time.
func (b *bundle) many(n int, channel string, at time.Time) {
	b.t.Helper()
	for i := range n {
		_, err := b.api.Submit(b.t.Context(), "", client.NewPush{Recipient: "many-" + number(i) + channel, Channel: channel, To: "+4912345", Message: client.Message{"body": "Hi"}, SendAt: at})
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// countAhead has the store's count say that so many are booked in an hour.
func (b *bundle) countAhead(hour time.Time, channel string, n int) {
	b.t.Helper()
	b.exec(`INSERT INTO ahead (tenant_id, hour, channel, category, campaign_id, n) VALUES ($1, $2, $3, '', '00000000-0000-0000-0000-000000000000', $4)`, [16]byte(b.tenant), hour, channel, n)
}

// exec runs a statement on the database of the test.
func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	c, err := pgx.Connect(b.t.Context(), b.url)
	if err == nil {
		_, err = c.Exec(b.t.Context(), sql, args...)
	}
	if err == nil {
		err = c.Close(b.t.Context())
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestCalendar_Month: the hours that have pushes are in the drawing and in the table, of all, by channel and by campaign.
func TestCalendar_Month(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := noon()
	b.many(3, "push", at)
	b.many(2, "sms", at.Add(time.Hour))
	one := b.startCampaign("Winter sale", at.Add(2*time.Hour), "recipient\na\nb\nc\nd\n")
	day := "&at=" + at.Format("2006-01-02")
	r := b.get("/console/calendar?tz=utc" + day)
	r.has(t, 200, "<h2>"+at.Format("January 2006")+"</h2>", "9 pushes are booked in this time, in an hour at most 4", "<title>"+at.Format("2006-01-02")+" 12:00: 3</title>",
		"<title>"+at.Format("2006-01-02")+" 14:00: 4</title>", "push: at most 5 400 an hour", "sms: any number", "Winter sale", "It can not be moved", "/v1/stats/ahead?")
	if strings.Contains(r.Body, "2 pushes") || strings.Contains(r.Body, "above the ceiling</p>") {
		t.Errorf("there is more than there is:\n%s", r.text())
	}
	b.get("/console/calendar?tz=utc&split=channel"+day).has(t, 200, "<h3>push: 7</h3>", "<h3>sms: 2</h3>", `id="heat-2-title">sms<`)
	b.get("/console/calendar?tz=utc&split=campaign"+day).has(t, 200, "<h3>Without a campaign: 5</h3>", "<h3>Winter sale: 4</h3>", "split_by=campaign")
	b.get("/console/calendar?tz=utc&channel=sms&view=week"+day).has(t, 200, "<h2>Week from ", "2 pushes are booked")
	b.get("/console/calendar?tz=utc&campaign="+one.ID+day).has(t, 200, "Only of the campaign Winter sale.", "4 pushes are booked")
	b.get("/console/calendar?tz=utc&at=2020-02").has(t, 200, "February 2020", "0 pushes are booked")
	b.get("/console/calendar?campaign=nonsense").has(t, 422, "query.campaign")
	if later := linkOf(t, r, "Later"); !strings.Contains(later, "at="+time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, time.UTC).Format("2006-01-02")) {
		t.Errorf("later is %s", later)
	}
}

// TestCalendar_Ceiling: an hour with more than its channel can carry is marked, in the whole and in the map of the channel.
func TestCalendar_Ceiling(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := noon()
	b.many(1, "sms", at)
	// 5 400 are an hour's of the channel: what a test can not book, it counts.
	b.countAhead(at, "push", 5401)
	b.countAhead(at.Add(time.Hour), "push", 5400)
	r := b.get("/console/calendar?tz=utc&split=channel&at=" + at.Format("2006-01-02"))
	r.has(t, 200, "In 1 hour more is booked", "▲5.4k", `over"><title>`+at.Format("2006-01-02")+" 12:00: 5 402</title>", `over"><title>`+at.Format("2006-01-02")+" 12:00: 5 401</title>", "Hours above the ceiling")
	if n := strings.Count(r.Body, `over"><title>`); n != 2 {
		t.Errorf("%d cells are marked, want that of the whole and that of the channel", n)
	}
}

// TestCalendar_Zone: a day on which the clocks are moved has 25 hours, or 23, and each of two equal hours has its own pushes.
func TestCalendar_Zone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in, first := clocksBack(t)
	b.cookies[zoneCookie] = in.String()
	b.countAhead(first, "push", 7)
	b.countAhead(first.Add(time.Hour), "push", 8)
	one, two, day := hourCell{From: first.In(in)}, hourCell{From: first.Add(time.Hour).In(in)}, first.In(in).Format("2006-01-02")
	b.get("/console/calendar?view=week&at="+day).has(t, 200, "<title>"+day+" "+one.Clock()+": 7</title>", "<title>"+day+" "+two.Clock()+": 8</title>", "25 h", "The hours are those of "+in.String())
	b.get("/console/calendar?view=week&tz=utc&at="+first.Format("2006-01-02")).has(t, 200, first.Format("2006-01-02 15:04")+": 7</title>", "The hours are those of UTC")
	b.cookies[zoneCookie] = "Europe/Berlin"
	b.get("/console/calendar?at=2027-03").has(t, 200, "Sun 28 Mar, 23 h", "The clocks leave this hour out.", "no such hour")
}

// TestCalendar_Roles: who may see neither channels nor campaigns sees the counts.
func TestCalendar_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.draft(client.NewCampaign{Name: "Winter sale", SendAt: noon()}, "recipient\na\n")
	path := "/console/calendar?tz=utc&at=" + noon().Format("2006-01-02")
	b.get(path).has(t, 200, "/console/calendar/campaigns/"+one.ID, "Drag the bar")
	b.who.Caller.Scopes = []string{push.ScopeRecordsRead, push.ScopeCampaignsRead}
	r := b.get(path)
	r.has(t, 200, "Winter sale", "your role may not change campaigns")
	b.who.Caller.Scopes = []string{push.ScopeRecordsRead}
	if again := b.get(path); again.Status != 200 || strings.Contains(again.Body, "Winter sale") || strings.Contains(r.Body, "/calendar/campaigns/") || strings.Contains(again.Body, "can carry") {
		t.Errorf("%d, and more is shown than may be:\n%s", again.Status, again.text())
	}
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get(path).has(t, 403, "records:read")
}

// TestCalendar_Capacity: the share of an audience that has a place at each hour, and each day, from now on.
func TestCalendar_Capacity(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := noon()
	for i := range 5 { // an hour of anna is full: the sixth is too much
		b.submitAt("anna", at.Add(time.Duration(2*i)*time.Minute+30*time.Second))
	}
	one := b.draft(client.NewCampaign{Name: "Winter sale"}, "recipient\nanna\nbert\ncarl\n")
	path := "/console/calendar?view=week&tz=utc&at=" + at.Format("2006-01-02")
	r := b.get(path + "&audience=" + one.ID)
	day := at.Format("2006-01-02")
	r.has(t, 200, "3 of 3 recipients were looked at.", "<title>"+day+" 12:00: 67 %</title>", "<title>"+day+" 11:00: 100 %</title>", "<title>"+day+" 13:00: 67 %</title>", "<title>"+day+" 14:00: 100 %</title>",
		"/capacity?", "time_zone=UTC", `name="audience"`, "Free capacity of Winter sale", ">100 %</text>")
	b.get(path+"&audience=nonsense").has(t, 422, "must be")
	b.get("/console/calendar?tz=utc&at=2020-01&audience="+one.ID).has(t, 200, "This time is over.")
	started := b.startCampaign("Spring sale", at, "recipient\ndora\n")
	b.get(path+"&audience="+started.ID).has(t, 409, "only be looked at while it is a draft")
}

// TestPercentOf: nothing and all are said of nothing and all alone.
func TestPercentOf(t *testing.T) {
	t.Parallel()
	for _, row := range [][3]int64{{0, 0, 0}, {0, 7, 0}, {1, 1000, 1}, {2, 3, 67}, {999, 1000, 99}, {7, 7, 100}} {
		if got := percentOf(row[0], row[1]); got != row[2] {
			t.Errorf("%d of %d are %d %%, want %d", row[0], row[1], got, row[2])
		}
	}
}
