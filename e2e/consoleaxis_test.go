package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// axisConfig has rules and quiet hours that are all visible on a time axis.
const axisConfig = `
policy:
  rules:
    - {name: per-minute, limit: 1, window: 1m}
    - {name: per-hour, limit: 2, window: 1h}
    - {name: marketing-per-day, limit: 4, window: 24h, categories: [marketing]}
  quiet_hours: [{name: night, from: "22:00", until: "08:00", zone: recipient}]
channels: {log: {type: log}}
http: {drain: 0s}
console: {enabled: true}
`

// holdEnter holds the enter key down until the keyboard repeats it.
func (w *window) holdEnter() {
	w.t.Helper()
	for i, kind := range []input.DispatchKeyEventType{"keyDown", "keyDown", "keyDown", "keyUp"} {
		_, err := chromedp.Call(w.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13, AutoRepeat: new(i > 0)})
		testenv.Check(w.t, err)
	}
}

// TestConsole_AxisKeys walks by keyboard from one free time to the next, along a day of a person with quiet hours and
// full rules. It books where another user was faster at first, moves a push to a full time, and cancels one after a
// preview of the freed times.
func TestConsole_AxisKeys(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: axisConfig})
	b.StartAPI()
	api := b.client()
	for id, r := range map[string]client.NewRecipient{
		"anna":  {TimeZone: "Europe/Berlin", Attributes: map[string]any{"first_name": "Anna", "plan": "gold"}},
		"bert":  {TimeZone: "Asia/Tokyo", OptOuts: &client.NewOptOuts{Categories: []string{"marketing"}}},
		"carla": {TimeZone: "America/New_York", OptOuts: &client.NewOptOuts{Channels: []string{"log"}}},
		"dora":  {OptOuts: &client.NewOptOuts{All: true}},
	} {
		_, err := api.Recipients.Put(t.Context(), id, r)
		testenv.Check(t, err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	testenv.Check(t, err)
	today := time.Now().In(berlin)
	at := func(hour, minute int) time.Time {
		return time.Date(today.Year(), today.Month(), today.Day()+2, hour, minute, 0, 0, berlin)
	}
	book := func(title, category string, at time.Time) client.Push {
		t.Helper()
		one, err := api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Category: category, Message: client.Message{"title": title}, SendAt: at})
		testenv.Check(t, err)
		return one
	}
	book("Winter sale", "marketing", at(9, 10))
	news := book("News", "", at(9, 40))
	parcel := book("Your parcel", "", at(13, 0))
	book("Last chance", "marketing", at(16, 30))
	gone := book("Reminder", "marketing", at(18, 0))
	_, err = api.Pushes.Cancel(t.Context(), gone.ID)
	testenv.Check(t, err)
	w := b.signIn("sender")
	cursor := func(at time.Time) {
		t.Helper()
		w.shown("[data-cursor]", at.Format("2006-01-02 15:04:05")+" Europe/Berlin")
	}
	axis := "/console/recipients/anna?tz=recipient&scale=day&at=" + at(12, 0).UTC().Format(time.RFC3339)

	w.visit("/console/recipients?tz=utc")
	w.said("America/New_York")
	w.screen("recipients")
	w.visit(axis + "&cursor=" + at(9, 0).UTC().Format(time.RFC3339))
	w.shown(".cursor-handle")
	w.shown("[data-why] strong", "per-hour")
	w.screen("")
	w.picture("recipient", 1000)
	w.tabTo("[data-do=next]")
	w.press(kb.Enter)
	cursor(at(10, 10)) // an hour after the first of the two
	w.keeps(map[string]string{"#f-kind-cursor": at(10, 10).Format("2006-01-02T15:04")})
	w.press(kb.Enter)
	cursor(at(13, 1))
	w.tabTo("[data-do=previous]")
	w.press(kb.Enter)
	cursor(at(13, 0).Add(-time.Minute))
	w.press(kb.Enter)
	cursor(at(8, 40))
	w.press(kb.Enter)
	cursor(at(-2, 0).Add(-time.Second)) // before the night: on another axis

	// On a narrow screen the drawing follows the cursor, which is seen from the beginning.
	seen := `(() => {
		const box = document.querySelector(".axis-box").getBoundingClientRect(), handle = document.querySelector(".cursor-handle").getBoundingClientRect()
		return handle.left >= box.left && handle.right <= box.right
	})()`
	w.size(320, 640)
	w.visit(axis + "&cursor=" + at(20, 0).UTC().Format(time.RFC3339))
	w.shown(".cursor-handle")
	w.until(seen)
	w.tabTo(".cursor-handle")
	for range 8 {
		w.press(kb.PageDown)
		w.until(seen)
	}
	w.size(1280, 800)

	// An open page keeps updating the distance of its times.
	eval[string](w, `document.querySelector("td time").dateTime = new Date(Date.now() + 20.5 * 86400 * 1000).toISOString()`)
	w.until(`document.querySelector("td time .distance").textContent === "in 20 d"`)

	// Another user is faster.
	w.visit(axis + "&cursor=" + at(10, 10).UTC().Format(time.RFC3339))
	w.said("A message of this kind can be sent here.")
	book("Weather", "", at(10, 10))
	w.tabTo("[data-do=choose]")
	w.holdEnter()
	w.until(`document.activeElement.id === "f-send_at"`)
	if at := eval[string](w, "location.pathname"); at != "/console/recipients/anna" {
		t.Errorf("a key that was held down has sent the form: %s", at)
	}
	w.tabTo(`[name="message.title"]`)
	w.expect("status of 409") // the place is taken
	w.press("One more", kb.Enter)
	w.shown("[role=alert]", "per-hour")
	w.said("The next free time is " + at(10, 40).Format("2006-01-02 15:04:05") + " Europe/Berlin")
	w.keeps(map[string]string{`[name="message.title"]`: "One more", "#f-send_at": at(10, 10).Format("2006-01-02T15:04")})
	w.screen("")
	w.tabTo("details:has(#f-message) summary")
	w.press(kb.Enter)
	w.tabTo("#f-message")
	w.press("[1")
	w.tabTo("main button[value=submit]")
	w.expect("status of 422") // no JSON object
	w.press(kb.Enter)
	w.shown("#fault-message", "not a JSON object")
	w.keeps(map[string]string{`[name="message.title"]`: "One more", "#f-message": "[1"})
	w.screen("")
	w.fill("#f-message", " ")
	w.tabTo("[data-do=next]")
	w.press(kb.Enter)
	cursor(at(10, 40))
	w.tabTo("main button[value=submit]")
	w.press(kb.Enter)
	w.said("Scheduled for " + at(10, 40).Format("2006-01-02 15:04:05"))

	// Moved to where there is no place, it stays.
	w.visit(axis + "&move=" + news.ID)
	w.shown(".cursor-handle")
	w.set("#f-move_to", at(13, 0).Format("2006-01-02T15:04:05"))
	w.tabTo("main form[action*='/move'] button")
	w.press(kb.Enter)
	w.shown("[role=alert]", "per-minute")
	w.keeps(map[string]string{"#f-move_to": at(13, 0).Format("2006-01-02T15:04")})
	w.screen("")

	// Dragged and let go with Escape, it stays, too.
	w.visit(axis)
	w.shown(".cursor-handle")
	from := w.middle("[data-push='" + news.ID + "']")
	w.mouse("mousePressed", from)
	w.mouse("mouseMoved", point{from.X + 20, from.Y})
	w.mouse("mouseMoved", point{w.middle("[data-push='"+parcel.ID+"']").X + 50, from.Y}) // about an hour later
	w.until(`document.querySelector("line.ghost:not(.illegal)")`)
	w.said("The message can be moved here.")
	w.press(kb.Escape)
	w.mouse("mouseReleased", from)
	w.until(`!document.querySelector("line.ghost")`)
	if now, err := api.Pushes.Get(t.Context(), news.ID); err != nil || !now.SendAt.Equal(at(9, 40)) {
		t.Errorf("it is at %s, %v", now.SendAt, err)
	}

	w.tabTo("a[href*='cancel=" + news.ID + "']")
	w.press(kb.Enter)
	w.said("These times become free:")
	w.screen("")
	w.picture("recipient-cancel", 1000)
	w.tabTo("main form[action*='/cancel'] button")
	w.press(kb.Enter)
	w.said("is canceled and no longer counts towards limits")
	if now, err := api.Pushes.Get(t.Context(), news.ID); err != nil || now.Status != client.PushStatusCanceled {
		t.Errorf("it is %s, %v", now.Status, err)
	}
}
