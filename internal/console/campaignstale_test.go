package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// exchange changes a draft and its audience, like another user would in the meantime.
func (b *bundle) exchange(at, title, audience string) {
	b.t.Helper()
	id := strings.TrimPrefix(at, frame.Root+"/campaigns/")
	_, err := b.api.Campaigns.Change(b.t.Context(), id, client.CampaignChange{Message: client.Message{"title": title}})
	if err == nil && audience != "" {
		_, err = b.api.Campaigns.PutAudience(b.t.Context(), id, strings.NewReader(audience), client.CSV)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestCampaign_StartIsOfWhatWasSimulated does not start a draft that another user changed after the simulation, or while the start page was open.
func TestCampaign_StartIsOfWhatWasSimulated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	b.exchange(at, "Hi", "recipient\nanna\n")
	toStart := regexp.MustCompile(`href="(` + at + `/start\?[^"]*simulated=[^"]+)"`)
	simulated := toStart.FindAllStringSubmatch(b.get(at+"/simulation").Body, -1)
	if len(simulated) != 2 || simulated[0][1] != simulated[1][1] { // the step and the button
		t.Fatalf("from the simulation lead on %q", simulated)
	}
	start := simulated[0][1]
	shown := hidden(t, b.get(start), "updated_at")

	b.exchange(at, "Something else", "recipient\nbert\n")
	const changed = "The draft was changed after the simulation"
	b.get(start).has(t, 412, changed, "Nothing was started", "Simulate again")
	b.post(start, "recipients", "1", "updated_at", shown).has(t, 412, changed, "Nothing was started", "Simulate again")
	b.get(at).has(t, 200, "Something else", "Simulate")
	if page := b.get(start); strings.Contains(page.Body, "To confirm, type") {
		t.Error("what was not simulated can be started")
	}

	start = toStart.FindStringSubmatch(b.get(at + "/simulation").Body)[1]
	b.follow(b.post(start, "recipients", "1", "updated_at", hidden(t, b.get(start), "updated_at"))).has(t, 200, "Campaign started")
}

// TestCampaign_StartWithoutSimulation: the page of the start can be opened at once, and starts what it showed.
func TestCampaign_StartWithoutSimulation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	b.exchange(at, "Hi", "recipient\nanna\n")
	page := b.get(at + "/start")
	page.has(t, 200, "Simulate it first", "To confirm, type")
	b.exchange(at, "Something else", "")
	b.post(at+"/start", "recipients", "1", "updated_at", hidden(t, page, "updated_at")).has(t, 412, "or since this page was opened")
}

// TestCampaign_ChangedInBetween does not let a form of a draft undo the change of another user.
func TestCampaign_ChangedInBetween(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	b.exchange(at, "Hi", "recipient\nanna\n")
	const refused = "Another user changed this after you opened the page"
	for _, c := range []struct {
		step   string
		fields []string
		kept   string
	}{
		{"/when", []string{"when", "start", "spread", "1h"}, `value="1h"`},
		{"/message", []string{"name", "Mine", "channel", "push", "shown_for", "push", "message.title", "My title"}, `value="My title"`},
	} {
		seen := hidden(t, b.get(at+c.step), "updated_at")
		b.exchange(at, "Theirs", "")
		b.post(at+c.step, append(c.fields, "updated_at", seen)...).has(t, 412, "Changed in the meantime", refused, c.kept)
		b.get(at).has(t, 200, "Theirs")
		if again := b.post(at+c.step, append(c.fields, "updated_at", hidden(t, b.get(at+c.step), "updated_at"))...); again.Status != 303 {
			t.Errorf("%s with what there is now: %d %s", c.step, again.Status, again.text())
		}
	}
	seen := hidden(t, b.get(at+"/when"), "updated_at")
	b.exchange(at, "Theirs", "")
	b.post(at+"/send-at", "send_at", "2099-01-01T10:00:00Z", "updated_at", seen).has(t, 412, refused)
	path := "/console/calendar/campaigns/" + strings.TrimPrefix(at, frame.Root+"/campaigns/")
	b.post(path, "to", "2099-01-01T10:00:00", "updated_at", seen).has(t, 412, refused)
}
