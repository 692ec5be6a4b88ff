package console

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/calendar"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// TestMoveCampaign: what another start would change is shown before, and nothing is changed by that. Then the draft has the new start.
func TestMoveCampaign(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := noon()
	b.submitAt("anna", at)
	one := b.draft(client.NewCampaign{Name: "Winter sale", SendAt: at}, "recipient\nanna\nbert\n")
	path := "/console/calendar/campaigns/" + one.ID + "?tz=utc&view=week"
	b.get(path).has(t, 200, "<h1>Move Winter sale</h1>", `value="`+at.Format("2006-01-02T15:04:05")+`"`, "Preview")
	to := at.Add(3 * time.Hour)
	r := b.get(path + "&to=" + frame.RFC3339(to))
	r.has(t, 200, "on time</td><td data-label=\"Now\" class=\"amount\">1</td><td data-label=\"Then\" class=\"amount\">2</td><td data-label=\"Change\" class=\"amount\">+1</td>",
		"limit reached</td><td data-label=\"Now\" class=\"amount\">1</td><td data-label=\"Then\" class=\"amount\">0</td><td data-label=\"Change\" class=\"amount\">−1</td>",
		"Nothing has been scheduled yet", `name="to_exact" value="`+frame.RFC3339(to)+`"`, `/simulate' \`, `-d '{"send_at":"`+frame.RFC3339(to)+`"}'`)
	b.get(path+"&to="+frame.RFC3339(at.Add(20*time.Second))).has(t, 200, "Limits reached", "per-minute: 1", "Better times")
	if c, err := b.api.Campaigns.Get(t.Context(), one.ID); err != nil || !c.SendAt.Equal(at) {
		t.Fatal(c.SendAt, err)
	}
	b.follow(b.post(path, "to", to.Format("2006-01-02T15:04:05"), "to_exact", frame.RFC3339(to))).has(t, 200,
		"“Winter sale” now begins "+to.Format("2006-01-02 15:04:05")+" UTC", "<h2>Week from", "Winter sale, draft, from "+to.Format("2006-01-02 15:04:05"))
	if c, err := b.api.Campaigns.Get(t.Context(), one.ID); err != nil || !c.SendAt.Equal(to) {
		t.Error(c.SendAt, err)
	}
}

// submitAt books a push for a time.
func (b *bundle) submitAt(recipient string, at time.Time) {
	b.t.Helper()
	if _, err := b.api.Pushes.Submit(b.t.Context(), "", client.NewPush{Recipient: recipient, Message: client.Message{"title": "Hello"}, SendAt: at}); err != nil {
		b.t.Fatal(err)
	}
}

// TestMoveCampaign_Faults: a start that is not accepted is shown again with why, and moves nothing.
func TestMoveCampaign_Faults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.draft(client.NewCampaign{Name: "Winter sale", SendAt: noon(), Latest: noon().Add(time.Hour)}, "recipient\nanna\n")
	path := "/console/calendar/campaigns/" + one.ID + "?tz=utc"
	for _, method := range []string{"GET", "POST"} {
		send := func(to string) reply {
			if method == "GET" {
				return b.get(path + "&to=" + url.QueryEscape(to))
			}
			return b.post(path, "to", to)
		}
		send("tomorrow").has(t, 422, `value="tomorrow"`, "is not a time", `id="fault-to"`)
		send("2020-01-01T09:00").has(t, 422, `value="2020-01-01T09:00`, "must not be more than a minute in the past", `id="fault-to"`)
		send(noon().Add(2*time.Hour).Format("2006-01-02T15:04")).has(t, 422, "must not be after latest", `id="fault-to"`)
	}
	if c, err := b.api.Campaigns.Get(t.Context(), one.ID); err != nil || !c.SendAt.Equal(noon()) {
		t.Error(c.SendAt, err)
	}
	b.get("/console/calendar/campaigns/"+strings.Repeat("0", 8)+"-0000-4000-8000-000000000000").has(t, 404)
}

// TestMoveCampaign_Fixed does not move a started campaign, and shows the reason.
func TestMoveCampaign_Fixed(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	one := b.startCampaign("Winter sale", noon(), "recipient\nanna\n")
	path := "/console/calendar/campaigns/" + one.ID + "?tz=utc"
	if r := b.get(path + "&to=" + frame.RFC3339(noon().Add(time.Hour))); r.Status != 200 || !strings.Contains(r.Body, "only a draft can be moved") || strings.Contains(r.Body, "<form method=\"post\" action=\"/console/calendar") {
		t.Errorf("%d\n%s", r.Status, r.text())
	}
	b.post(path, "to", frame.RFC3339(noon().Add(time.Hour))).has(t, 409, "only a draft can be moved")
}

// TestMoveCampaign_NoAudience: a draft without one is moved without a simulation.
func TestMoveCampaign_NoAudience(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.draft(client.NewCampaign{Name: "Winter sale"}, "")
	b.get("/console/calendar?tz=utc").has(t, 200, "Winter sale", "when it starts")
	path := "/console/calendar/campaigns/" + one.ID + "?tz=utc"
	b.get(path+"&to="+frame.RFC3339(noon())).has(t, 200, "the campaign has no audience", "<button>Move</button>")
	b.follow(b.post(path, "to", frame.RFC3339(noon()))).has(t, 200, "now begins")
}

// TestMoveCampaign_Local: a campaign with a local time keeps one: by the clocks of its zone, or of each recipient. The second of two
// equal hours is none.
func TestMoveCampaign_Local(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := noon()
	zoned := b.draft(client.NewCampaign{Name: "Zoned", LocalTime: at.Format(calendar.LocalLayout), TimeZone: "Asia/Tokyo"}, "recipient\nanna\n")
	all := b.draft(client.NewCampaign{Name: "Everywhere", LocalTime: at.Format(calendar.LocalLayout)}, "recipient\nanna\n")
	path := "/console/calendar/campaigns/"
	b.get(path+zoned.ID+"?tz=utc&to="+frame.RFC3339(at)).has(t, 200, `-d '{"local_time":"`+at.Add(9*time.Hour).Format(calendar.LocalLayout)+`"}'`)
	b.follow(b.post(path+zoned.ID+"?tz=utc", "to", frame.RFC3339(at))).has(t, 200, "now begins "+at.Format("2006-01-02 15:04:05")+" UTC")
	// The bar begins where clocks are furthest ahead: dropped an hour later, all clocks show an hour more.
	r := b.get(path + all.ID + "?tz=utc&to=" + frame.RFC3339(at.Add(time.Hour-calendar.FurthestAhead)))
	r.has(t, 200, "local time of each recipient", `value="`+at.Add(time.Hour).Format(calendar.LocalLayout)+`"`)
	b.follow(b.post(path+all.ID+"?tz=utc", "to", at.Add(time.Hour).Format(calendar.LocalLayout), "to_exact", frame.RFC3339(at.Add(time.Hour)))).has(t, 200, at.Add(time.Hour).Format("2006-01-02 15:04:05")+", local time of each recipient")
	b.follow(b.post(path+all.ID+"?tz=utc", "to", at.Add(2*time.Hour).Format("2006-01-02T15:04"), "to_exact", frame.RFC3339(at.Add(time.Hour)))).has(t, 200, at.Add(2*time.Hour).Format("2006-01-02 15:04:05")+", local time of each recipient")
	for id, want := range map[string]string{zoned.ID: at.Add(9 * time.Hour).Format(calendar.LocalLayout), all.ID: at.Add(2 * time.Hour).Format(calendar.LocalLayout)} {
		if c, err := b.api.Campaigns.Get(t.Context(), id); err != nil || c.LocalTime != want || !c.SendAt.IsZero() {
			t.Errorf("%s: %s, %s, want %s; %v", c.Name, c.LocalTime, c.SendAt, want, err)
		}
	}
	in, first := clocksBack(t)
	twice := b.draft(client.NewCampaign{Name: "Twice", LocalTime: at.Format(calendar.LocalLayout), TimeZone: in.String()}, "recipient\nanna\n")
	b.get(path+twice.ID+"?tz=utc&to="+frame.RFC3339(first.Add(time.Hour))).has(t, 422, "show this time twice")
	b.get(path+twice.ID+"?tz=utc&to="+frame.RFC3339(first)).has(t, 200, `"local_time":"`+first.In(in).Format(calendar.LocalLayout))
}

// clocksBack is a zone, and the first of two equal hours of it that comes within the next months.
func clocksBack(t *testing.T) (*time.Location, time.Time) {
	t.Helper()
	for at := noon(); at.Before(noon().Add(300 * 24 * time.Hour)); at = at.Add(time.Hour) {
		for _, name := range []string{"Europe/Berlin", "Australia/Sydney"} {
			in := frame.LoadZone(name)
			if at.In(in).Hour() == at.Add(time.Hour).In(in).Hour() {
				return in, at
			}
		}
	}
	t.Fatal("no clocks are set back")
	return nil, time.Time{}
}
