package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/calendar"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// draft makes a draft with an audience in CSV.
func (b *bundle) draft(c client.NewCampaign, audience string) client.Campaign {
	b.t.Helper()
	if c.Message == nil {
		c.Message = client.Message{"title": "Hi"}
	}
	made, err := b.api.Campaigns.Create(b.t.Context(), "", c)
	if err == nil && audience != "" {
		_, err = b.api.Campaigns.PutAudience(b.t.Context(), made.ID, strings.NewReader(audience), client.CSV)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// many books a number of pushes of different recipients at one time.
func (b *bundle) many(n int, channel string, at time.Time) {
	b.t.Helper()
	for i := range n {
		_, err := b.api.Pushes.Submit(b.t.Context(), "", client.NewPush{Recipient: "many-" + frame.Number(i) + channel, Channel: channel, To: "+4912345", Message: client.Message{"body": "Hi"}, SendAt: at})
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// countAhead sets the stored count of an hour.
func (b *bundle) countAhead(hour time.Time, channel string, n int) {
	b.t.Helper()
	testenv.Exec(b.t, b.url, `INSERT INTO ahead (tenant_id, hour, channel, category, campaign_id, n) VALUES ($1, $2, $3, '', '00000000-0000-0000-0000-000000000000', $4)`, [16]byte(b.tenant), hour, channel, n)
}

// TestCalendar_Month: the hours that have pushes are in the drawing and in the table, of all, by channel and by campaign.
func TestCalendar_Month(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	at := noon()
	b.many(3, "push", at)
	b.many(2, "sms", at.Add(time.Hour))
	one := b.startCampaign("Winter sale", at.Add(2*time.Hour), "recipient\na\nb\nc\nd\n")
	day := "&at=" + at.Format("2006-01-02")
	r := b.get("/console/calendar?tz=utc" + day)
	r.has(t, 200, "<h2>"+at.Format("January 2006")+"</h2>", "9 messages are scheduled in this period, at most 4", "<title>"+at.Format("2006-01-02")+" 12:00: 3</title>",
		"<title>"+at.Format("2006-01-02")+" 14:00: 4</title>", "push: up to 5 400 per hour", "sms: unlimited", "Winter sale", "It cannot be moved", "/v1/stats/ahead?")
	if strings.Contains(r.Body, "2 messages") || strings.Contains(r.Body, "above the ceiling</p>") {
		t.Errorf("there is more than there is:\n%s", r.text())
	}
	b.get("/console/calendar?tz=utc&split=channel"+day).has(t, 200, "<h3>push: 7</h3>", "<h3>sms: 2</h3>", `id="heat-2-title">sms<`)
	b.get("/console/calendar?tz=utc&split=campaign"+day).has(t, 200, "<h3>Without a campaign: 5</h3>", "<h3>Winter sale: 4</h3>", "split_by=campaign")
	b.get("/console/calendar?tz=utc&channel=sms&view=week"+day).has(t, 200, "<h2>Week from ", "2 messages are scheduled")
	b.get("/console/calendar?tz=utc&campaign="+one.ID+day).has(t, 200, "Only the campaign Winter sale.", "4 messages are scheduled", "Only the filtered messages are compared")
	draft := b.draft(client.NewCampaign{Name: "Spring sale", SendAt: at}, "recipient\na\n")
	b.get("/console/calendar?tz=utc&audience="+draft.ID+day).has(t, 200, `<input type="hidden" name="audience" value="`+draft.ID+`">`)
	b.get("/console/calendar?tz=utc&at=2020-02").has(t, 200, "February 2020", "0 messages are scheduled")
	b.get("/console/calendar?campaign=nonsense").has(t, 422, "campaign: must be a UUID")
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
	// 5 400 are an hour's of the channel: what a test cannot book, it counts.
	b.countAhead(at, "push", 5401)
	b.countAhead(at.Add(time.Hour), "push", 5400)
	r := b.get("/console/calendar?tz=utc&split=channel&at=" + at.Format("2006-01-02"))
	r.has(t, 200, "In 1 hour, more is scheduled", "▲5.4k", `over"><title>`+at.Format("2006-01-02")+" 12:00: 5 402</title>", `over"><title>`+at.Format("2006-01-02")+" 12:00: 5 401</title>", "Hours above the ceiling")
	if n := strings.Count(r.Body, `over"><title>`); n != 2 {
		t.Errorf("%d cells are marked, want the total and the channel", n)
	}
}

// TestCalendar_Zone shows 25 or 23 hours on a day with a clock change. Each of two equal hours has its own pushes.
func TestCalendar_Zone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in, first := clocksBack(t)
	b.cookies["sendquota_tz"] = in.String()
	b.countAhead(first, "push", 7)
	b.countAhead(first.Add(time.Hour), "push", 8)
	one, two, day := calendar.HourCell{From: first.In(in)}, calendar.HourCell{From: first.Add(time.Hour).In(in)}, first.In(in).Format("2006-01-02")
	b.get("/console/calendar?view=week&at="+day).has(t, 200, "<title>"+day+" "+one.Clock()+": 7</title>", "<title>"+day+" "+two.Clock()+": 8</title>", "25 h", "Hours are shown in "+in.String())
	b.get("/console/calendar?view=week&tz=utc&at="+first.Format("2006-01-02")).has(t, 200, first.Format("2006-01-02 15:04")+": 7</title>", "Hours are shown in UTC")
	b.cookies["sendquota_tz"] = "Europe/Berlin"
	b.get("/console/calendar?at=2027-03").has(t, 200, "Sun 28 Mar, 23 h", "Skipped by a clock change.", "no such hour")
}

// TestCalendar_Roles: who may see neither channels nor campaigns sees the counts.
func TestCalendar_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.draft(client.NewCampaign{Name: "Winter sale", SendAt: noon()}, "recipient\na\n")
	path := "/console/calendar?tz=utc&at=" + noon().Format("2006-01-02")
	b.get(path).has(t, 200, "/console/calendar/campaigns/"+one.ID, "Drag a draft")
	b.who.Caller.Scopes = []string{push.ScopeRecordsRead, push.ScopeCampaignsRead}
	r := b.get(path)
	r.has(t, 200, "Winter sale", "your role cannot change campaigns")
	move := "/console/calendar/campaigns/" + one.ID + "?to=" + frame.RFC3339(noon().Add(time.Hour))
	b.get(move).has(t, 403, "cannot do this")
	b.post(move, "to", frame.RFC3339(noon().Add(time.Hour))).has(t, 403, "cannot do this")
	b.who.Caller.Scopes = append(b.who.Caller.Scopes, push.ScopeCampaignsDraft)
	b.get(path).has(t, 200, "/console/calendar/campaigns/"+one.ID, "Drag a draft")
	b.get(move).has(t, 200, "Preview", "<button>Move</button>")
	b.who.Caller.Scopes = []string{push.ScopeRecordsRead}
	if again := b.get(path); again.Status != 200 || strings.Contains(again.Body, "Winter sale") || strings.Contains(r.Body, "/calendar/campaigns/") || strings.Contains(again.Body, "can carry") {
		t.Errorf("%d, and more is shown than may be:\n%s", again.Status, again.text())
	}
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get(path).has(t, 403, "cannot do this")
}

// TestCalendar_Capacity: the share of an audience that has a place at each hour, and each day, from now on.
func TestCalendar_Capacity(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	at := noon()
	for i := range 5 { // an hour of anna is full: the sixth is too much
		b.submitAt("anna", at.Add(time.Duration(2*i)*time.Minute+30*time.Second))
	}
	one := b.draft(client.NewCampaign{Name: "Winter sale"}, "recipient\nanna\nbert\ncarl\n")
	path := "/console/calendar?view=week&tz=utc&at=" + at.Format("2006-01-02")
	r := b.get(path + "&audience=" + one.ID)
	day := at.Format("2006-01-02")
	r.has(t, 200, "Sample: 3 of 3 recipients.", "<title>"+day+" 12:00: 67 %</title>", "<title>"+day+" 11:00: 100 %</title>", "<title>"+day+" 13:00: 67 %</title>", "<title>"+day+" 14:00: 100 %</title>",
		"/capacity?", "time_zone=UTC", `name="audience"`, "Reachable share of Winter sale", ">100 %</text>")
	b.get(path+"&audience=nonsense").has(t, 422, "must be")
	b.get("/console/calendar?tz=utc&at=2020-01&audience="+one.ID).has(t, 200, "This period is over.")
	started := b.startCampaign("Spring sale", at, "recipient\ndora\n")
	b.get(path+"&audience="+started.ID).has(t, 409, "only available while it is a draft")
}
