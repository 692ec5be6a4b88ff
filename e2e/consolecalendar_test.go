package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// planned makes a draft with an audience in CSV.
func (b *bundle) planned(c client.NewCampaign, audience string) client.Campaign {
	b.t.Helper()
	c.Message = client.Message{"title": "Hi"}
	made, err := b.client().Campaigns.Create(b.t.Context(), "", c)
	testenv.Check(b.t, err)
	_, err = b.client().Campaigns.PutAudience(b.t.Context(), made.ID, strings.NewReader(audience), client.CSV)
	testenv.Check(b.t, err)
	return made
}

// started makes a campaign, and waits until all of its pushes are decided.
func (b *bundle) started(c client.NewCampaign, audience string) client.Campaign {
	b.t.Helper()
	made := b.planned(c, audience)
	_, err := b.client().Campaigns.Start(b.t.Context(), made.ID)
	testenv.Check(b.t, err)
	b.until("all pushes of "+c.Name+" are decided", func() bool {
		made, err = b.client().Campaigns.Get(b.t.Context(), made.ID)
		testenv.Check(b.t, err)
		return made.Status == client.CampaignStatusRunning || made.Status == client.CampaignStatusFinished
	})
	return made
}

// TestConsole_Calendar moves a draft in the calendar, with the keyboard and with the mouse: nothing is changed before it was seen what
// that would do. A campaign that was started stays.
func TestConsole_Calendar(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: strings.Replace(consoleConfig, "log: {type: log}", "log: {type: log, throughput: {rate: 100, per: 1h}}", 1)})
	b.StartAPI()
	b.Start("worker")
	noon := tomorrowNoon()
	var many client.NewBatch
	for i := range 250 { // half of them in one hour, which is more than the channel can carry
		at := noon.Add(time.Duration(max(0, i-125)/10-6) * time.Hour)
		many.Pushes = append(many.Pushes, client.NewPush{Recipient: fmt.Sprint("user-", i), Channel: "log", Message: client.Message{"title": "News"}, SendAt: at})
	}
	for _, hours := range []int{4, 6} { // with the autumn sale, a full day for anna
		many.Pushes = append(many.Pushes, client.NewPush{Recipient: "anna", Channel: "log", Message: client.Message{"title": "News"}, SendAt: noon.Add(time.Duration(hours) * time.Hour)})
	}
	if made, err := b.client().Pushes.SubmitBatch(t.Context(), "", many); err != nil || made.Refused > 0 {
		t.Fatal(made, err)
	}
	draft := b.planned(client.NewCampaign{Name: "Winter sale", SendAt: noon, Spread: "2h"}, "recipient\nanna\nbert\n")
	b.started(client.NewCampaign{Name: "Autumn sale", SendAt: noon.Add(time.Hour)}, "recipient\nanna\ncarl\n")
	start := func() time.Time {
		now, err := b.client().Campaigns.Get(t.Context(), draft.ID)
		testenv.Check(t, err)
		return now.SendAt.UTC()
	}
	w := b.signIn("editor")
	month := "/console/calendar?tz=utc&split=channel&audience=" + draft.ID + "&at=" + noon.Format("2006-01-02")

	w.visit(month)
	w.said("Best time to send")
	w.said("it has started, and only a draft")
	w.screen("")
	w.click("details.same summary")
	w.screen("")
	if movable := eval[int](w, `document.querySelectorAll(".bars a").length`); movable != 1 {
		t.Errorf("%d campaigns can be moved, want the draft alone", movable)
	}

	// With the keyboard, in a week: two steps of a quarter of an hour.
	w.visit(strings.Replace(month, "&split=channel", "", 1) + "&view=week")
	w.said("In 1 hour, more is scheduled than a channel can send.")
	w.said("Sample: 2 of 2 recipients")
	w.until(`[...document.querySelectorAll("svg.heat title")].some(e => e.textContent.startsWith("` + noon.Format("2006-01-02") + `") && e.textContent.endsWith(": 50 %"))`) // bert alone has a place
	w.screen("")
	w.picture("calendar", 1900)
	w.shown("a.bar-draft")
	w.tabTo("a.bar-draft")
	w.press(kb.ArrowRight, kb.ArrowRight)
	w.said(noon.Format("2006-01-02") + " 12:30")
	w.press(kb.Escape)
	w.said("Not moved.")
	w.press(kb.ArrowRight, kb.ArrowRight, kb.Enter)
	w.said("The new start is " + stamp(noon.Add(30*time.Minute)))
	w.said("Nothing has been scheduled yet")
	w.shown("table.compare")
	w.screen("calendar-move")
	if at := start(); !at.Equal(noon) {
		t.Errorf("a look moved it to %s", at)
	}
	w.tabTo("main form[method=post] button")
	w.press(kb.Enter)
	w.said("“Winter sale” now begins " + stamp(noon.Add(30*time.Minute)))
	if at := start(); !at.Equal(noon.Add(30 * time.Minute)) {
		t.Errorf("it begins at %s", at)
	}

	// With the mouse, in a month.
	w.visit(month)
	from := w.middle("a.bar-draft rect")
	w.mouse("mousePressed", from)
	w.mouse("mouseMoved", point{from.X + 10, from.Y})
	w.mouse("mouseMoved", point{from.X + 30, from.Y})
	w.shown("[data-says]", "Release it")
	w.mouse("mouseReleased", point{from.X + 30, from.Y})
	w.until(`location.pathname.startsWith("/console/calendar/campaigns/") && document.readyState === "complete"`)
	to, err := time.Parse(time.RFC3339, eval[string](w, `new URLSearchParams(location.search).get("to")`))
	testenv.Check(t, err)
	w.said("The new start is " + stamp(to))
	if before := start(); !to.After(before) || before.Sub(noon) != 30*time.Minute {
		t.Errorf("dragged from %s to %s", before, to)
	}
	w.click("button", "Move")
	w.said("“Winter sale” now begins " + stamp(to))
	if at := start(); !at.Equal(to) {
		t.Errorf("it begins at %s, want %s", at, to)
	}

	// A click without a drag opens the page, with nothing chosen.
	w.click("a.bar-draft rect")
	w.shown("h1", "Move Winter sale")
	w.until(`!location.search.includes("to=")`)
}
