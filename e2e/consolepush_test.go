package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_SubmitPush submits a push by the form: a taken time is refused and keeps the input, the next free one is
// previewed, and then booked.
func TestConsole_SubmitPush(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	noon := tomorrowNoon()
	_, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Channel: "log", Message: client.Message{"title": "News"}, SendAt: noon})
	testenv.Check(t, err)
	w := b.signIn("sender")
	at := func(t time.Time) string { return t.Format("2006-01-02T15:04:05") }
	typed := map[string]string{"#f-recipient": "anna", "#f-category": "sale", "[id='f-message.title']": "Winter sale", "[id='f-message.body']": "It begins today.", "#f-channel": "push"}

	w.visit("/console/pushes?tz=utc")
	w.tabTo("a[href*='/pushes/new']")
	w.press(kb.Enter)
	w.tabTo("#f-recipient")
	w.press("anna")
	w.tabTo("#f-channel")
	w.press("push")
	w.tabTo("#f-category")
	w.press("sale")
	w.set("#f-send_at", "2020-01-01T09:00:00")
	w.tabTo("[id='f-message.title']")
	w.press("Winter sale")
	w.tabTo("[id='f-message.body']")
	w.press("It begins today.")
	w.expect("status of 422") // a time in the past
	w.tabTo("button[value=submit]")
	w.press(kb.Enter)
	w.shown("#fault-send_at", "in the past")
	w.keeps(typed)
	w.screen("")
	w.expect("status of 409") // the time is taken
	w.set("#f-send_at", at(noon.Add(20*time.Second)))
	w.tabTo("button[value=submit]")
	w.press(kb.Enter)
	w.shown("[role=alert]", "per-minute")
	w.said("The next free time is " + stamp(noon.Add(time.Minute)))
	w.keeps(typed)
	w.keeps(map[string]string{"#f-send_at": at(noon.Add(20 * time.Second))})
	w.screen("push-new")
	w.tabTo("button[name=next_free]")
	w.press(kb.Enter)
	w.said("It would be scheduled for " + stamp(noon.Add(time.Minute)))
	w.said("Nothing was scheduled yet.")
	w.keeps(typed)
	if n := testenv.Query[int](t, b.Database, `SELECT count(*) FROM pushes`); n != 1 {
		t.Errorf("a look booked something: there are %d pushes", n)
	}
	w.screen("")
	w.tabTo("button[value=submit]")
	w.press(kb.Enter)
	w.shown("h1", "Message for anna")
	w.said("Scheduled for " + stamp(noon.Add(time.Minute)))
	w.until(`location.pathname.startsWith("/console/pushes/")`)
	for push, err := range b.client().Pushes.List(t.Context(), client.PushesOptions{Recipient: "anna", Channel: "push"}) {
		if testenv.Check(t, err); !push.SendAt.Equal(noon.Add(time.Minute)) || push.Category != "sale" || push.Message["body"] != "It begins today." {
			t.Errorf("%+v is booked", push)
		}
	}
	b.wantAudited()
}

// TestConsole_OnePush moves a push to the next free time, and retries a failed one through the quota, after a preview.
func TestConsole_OnePush(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	noon := tomorrowNoon()
	book := func(recipient string, message client.Message, at time.Time) client.Push {
		one, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: recipient, Message: message, SendAt: at})
		testenv.Check(t, err)
		return one
	}
	one := book("anna", client.Message{"title": "Winter sale"}, noon)
	book("anna", client.Message{"title": "News"}, noon.Add(time.Hour))
	bad := book("bert", client.Message{"title": "Welcome", "do": "404"}, time.Time{})
	b.until("one has failed", func() bool {
		now, err := b.client().Pushes.Get(t.Context(), bad.ID)
		testenv.Check(t, err)
		return now.Status == client.PushStatusFailed
	})
	book("bert", client.Message{"title": "News"}, noon)
	w := b.signIn("sender")

	w.visit("/console/pushes/" + one.ID + "?tz=utc")
	w.expect("status of 422") // a time in the past
	w.set("#f-move_to", "2020-01-01T09:00:00")
	w.tabTo("main button[value=move]")
	w.press(kb.Enter)
	w.shown("#fault-move_to", "in the past")
	w.keeps(map[string]string{"#f-move_to": "2020-01-01T09:00"})
	w.screen("")
	w.expect("status of 409") // the time is taken
	w.set("#f-move_to", noon.Add(time.Hour).Format("2006-01-02T15:04:05"))
	w.tabTo("main button[value=move]")
	w.press(kb.Enter)
	w.said("per-minute")
	w.said("The next free time is " + stamp(noon.Add(time.Hour+time.Minute)))
	w.tabTo("button[name=next_free]")
	w.press(kb.Enter)
	w.said("It can be moved to " + stamp(noon.Add(time.Hour+time.Minute)))
	w.screen("push-move")
	w.tabTo("main button[value=move]")
	w.press(kb.Enter)
	w.said("The message for anna is moved to " + stamp(noon.Add(time.Hour+time.Minute)))
	if moved, err := b.client().Pushes.Get(t.Context(), one.ID); err != nil || !moved.SendAt.Equal(noon.Add(time.Hour+time.Minute)) {
		t.Errorf("it is at %s, %v", moved.SendAt, err)
	}

	// The one that failed: at noon there is no place for it, a minute later there is.
	w.visit("/console/pushes/" + bad.ID + "?tz=utc")
	w.said("the provider answered 404")
	w.set("#f-retry_at", noon.Format("2006-01-02T15:04:05"))
	w.tabTo("main button[value=check]")
	w.press(kb.Enter)
	w.said("per-minute")
	w.tabTo("#f-on_conflict")
	w.press("send")
	w.tabTo("main button[value=check]")
	w.press(kb.Enter)
	w.said("The retry would be scheduled for " + stamp(noon.Add(time.Minute)))
	w.said("Nothing was scheduled yet.")
	if n := testenv.Query[int](t, b.Database, `SELECT count(*) FROM pushes WHERE recipient = 'bert'`); n != 2 {
		t.Errorf("a look booked something: there are %d pushes", n)
	}
	w.screen("push-retry")
	w.tabTo("main button[value=retry]")
	w.press(kb.Enter)
	w.said("This is the retry, scheduled for " + stamp(noon.Add(time.Minute)))
	w.click("dd a[href*='"+bad.ID+"']", bad.ID)
	w.tabTo("main button[value=check]")
	w.press(kb.Enter)
	w.said("It was retried before: that retry is scheduled, so no other one would be scheduled.")
	b.wantAudited()
}

// TestConsole_BulkMove changes all pushes of a filter with the keyboard alone: first it moves them, then it cancels them.
func TestConsole_BulkMove(t *testing.T) {
	allOnly(t)
	t.Parallel()
	const pushes = 20
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	noon := tomorrowNoon()
	for i := range pushes {
		for _, category := range []string{"news", "sale"} {
			at := noon
			if category == "news" {
				at = noon.Add(2 * time.Hour)
				if i > 0 { // in the way of the first alone
					at = at.Add(time.Hour)
				}
			}
			_, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: fmt.Sprint("buyer-", i), Category: category, Message: client.Message{"title": "Sale"}, SendAt: at})
			testenv.Check(t, err)
		}
	}
	at := func() string {
		return testenv.Query[string](t, b.Database, `SELECT string_agg(DISTINCT to_char(send_at AT TIME ZONE 'UTC', 'HH24:MI') || ' ' || status, ', ') FROM pushes WHERE category = 'sale'`)
	}
	w := b.signIn("sender")

	w.visit("/console/pushes?tz=utc")
	w.tabTo("#f-category")
	w.press("sale", kb.Enter)
	w.until(`location.search.includes("category=sale") && document.readyState === "complete"`)
	w.tabTo("a[href*='/pushes/bulk']")
	w.press(kb.Enter)
	w.shown("h1", "Cancel or reschedule messages")
	w.tabTo("#f-action")
	w.press("move")
	w.tabTo("#f-shift")
	w.expect("status of 422") // no span of time
	w.press("two hours", kb.Enter)
	w.shown("#fault-shift")
	w.keeps(map[string]string{"#f-shift": "two hours", "#f-action": "move"})
	w.screen("")
	w.tabTo("#f-shift")
	w.press("2h", kb.Enter) // what the tabulator leads to is marked: it is typed over
	w.said("20 messages match now")
	w.said("Of 20 checked, 19 would move and 1 would keep their time.")
	w.screen("pushes-bulk-move")
	if got := at(); got != "12:00 scheduled" {
		t.Errorf("a look moved something: they are at %s", got)
	}
	w.tabTo("button[value=start]")
	w.press(kb.Enter)
	w.until(`location.pathname.startsWith("/console/pushes/bulk/")`)
	w.shown("[role=status]", "Moved: 19 of 20.") // by itself
	w.shown("h2", "Messages that were not changed")
	w.screen("pushes-bulk-refused")
	if got := at(); got != "12:00 scheduled, 14:00 scheduled" {
		t.Errorf("they are at %s", got)
	}

	w.visit("/console/pushes?tz=utc&category=sale")
	w.tabTo("a[href*='/pushes/bulk']")
	w.press(kb.Enter)
	w.shown("h1", "Cancel or reschedule messages")
	w.tabTo("button[value=check]")
	w.press(kb.Enter)
	w.said("20 messages match now")
	w.tabTo("button[value=start]")
	w.press(kb.Enter)
	w.shown("[role=status]", "Canceled: 20 of 20.")
	if left := testenv.Query[int](t, b.Database, `SELECT count(*) FROM pushes WHERE status = 'scheduled' AND category = 'news'`); left != pushes {
		t.Errorf("%d pushes of another category are left, want %d", left, pushes)
	}
	if got := at(); got != "12:00 canceled, 14:00 canceled" {
		t.Errorf("they are %s", got)
	}
	b.wantAudited()
}
