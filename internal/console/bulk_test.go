package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// TestBulk cancels the pushes that fit a filter: it estimates first how many these are, and starts the change that it has estimated by a
// button, whatever has been sent or booked since.
func TestBulk(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ended := b.submit("user-1", time.Hour)
	b.submit("user-1", 2*time.Hour)
	other := b.submit("user-2", time.Hour)
	b.get("/console/pushes?recipient=user-1").has(t, 200, "/console/pushes/bulk?recipient=user-1")
	b.get("/console/pushes/bulk?recipient=user-1").has(t, 200, "that match this filter", "user-1", "Preview")
	fields := []string{"recipient", "user-1", "action", "cancel"}
	b.post("/console/pushes/bulk", append(fields, "do", "check")...).has(t, 200, "2</strong> messages match", "Cancel 2 messages", `name="estimated" value="cancel;;"`, "validate_only=true")
	b.post("/console/pushes/bulk", append(fields, "do", "start", "estimated", "move;1h;")...).has(t, 200, "You changed the form", "Cancel 2 messages")
	b.post("/console/pushes/bulk", append(fields, "do", "start")...).has(t, 200, "Nothing was changed yet", "Cancel 2 messages")
	if _, err := b.api.Pushes.Cancel(t.Context(), ended.ID); err != nil { // the number on the button is stale
		t.Fatal(err)
	}
	b.post("/console/pushes/bulk", "recipient", "user-1", "action", "move", "send_at", "never", "do", "check").has(t, 422, "fault-send_at")
	started := b.post("/console/pushes/bulk", append(fields, "do", "start", "estimated", "cancel;;", "once", "one-key")...)
	b.follow(started).has(t, 200, "running", `/stop"`, "hx-sse:connect")
	booked := b.submit("user-1", 3*time.Hour)
	for range 10 {
		if _, err := b.bulks.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	done := b.follow(started)
	done.has(t, 200, "done", "Canceled: 1 of 1")
	if strings.Contains(done.Body, `/stop"`) {
		t.Error("what has ended can be stopped")
	}
	for _, left := range []client.Push{other, booked} {
		if now, err := b.api.Pushes.Get(t.Context(), left.ID); err != nil || now.Status != client.PushStatusScheduled {
			t.Errorf("%s, %v", now.Status, err)
		}
	}
	b.post("/console/pushes/bulk", "action", "move", "shift", "1h", "do", "check").has(t, 200, "2</strong> messages match", "Of 2 checked, 2 would move", "Move 2 messages")
	if none := b.post("/console/pushes/bulk", "recipient", "user-3", "action", "cancel", "do", "check"); strings.Contains(none.Body, `value="start"`) {
		t.Error("a change of no pushes can be started")
	}
}

// TestBulk_Times: the times of the filter say their zone and how far they are, and stay what they are when another zone is chosen.
func TestBulk_Times(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.api.Recipients.Put(t.Context(), "user-1", client.NewRecipient{TimeZone: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	one := b.submit("user-1", 2*time.Hour)
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	from, until := one.SendAt.Add(-time.Minute).Truncate(time.Second), one.SendAt.Add(time.Minute).Truncate(time.Second)
	page := b.get("/console/pushes/bulk?tz=recipient&recipient=user-1&from=" + from.In(tokyo).Format("2006-01-02T15:04:05") + "&until=" + frame.RFC3339(until))
	page.has(t, 200, from.In(tokyo).Format("2006-01-02 15:04:05")+` <span class="zone">Asia/Tokyo (+09:00)</span> <span class="distance">in 1 h 5`, `name="from" value="`+frame.RFC3339(from)+`"`, `name="until" value="`+frame.RFC3339(until)+`"`)
	b.post("/console/pushes/bulk?tz=utc", "recipient", "user-1", "from", frame.RFC3339(from), "until", frame.RFC3339(until), "action", "cancel", "do", "check").has(t, 200, "1</strong> message matches", from.UTC().Format("2006-01-02 15:04:05")+` <span class="zone">UTC`)
	b.get("/console/pushes/bulk?from=never").has(t, 422, "is not a time")
}
