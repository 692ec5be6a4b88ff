package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Schedules creates a schedule with the form, reads its times, pauses it and resumes it.
func TestConsole_Schedules(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("sender")

	w.visit("/console/schedules?tz=utc")
	w.click("a", "New schedule")
	w.expect("status of 422") // no cron expression
	w.fill("#f-name", "Digest")
	w.fill("#f-cron", "9 o'clock")
	w.fill("#f-time_zone", "Europe/Berlin")
	w.fill("[id='f-push.recipient']", "anna")
	w.fill("[id='f-push.title']", "Your week")
	w.click("button", "Create schedule")
	w.shown("#fault-cron")
	w.screen("schedule-new")
	w.fill("#f-cron", "0 9 * * MON")
	w.press(kb.Enter)
	w.said("Schedule created.")
	w.said("at 09:00, on Monday (0 9 * * MON), Europe/Berlin time")
	w.said(", 09:00 +0") // of the clocks of Berlin
	if runs := eval[int](w, `document.querySelectorAll("[aria-label='Next runs'] tbody tr").length`); runs != 5 {
		t.Errorf("%d next runs are shown", runs)
	}
	w.screen("schedule")
	w.tabTo("main button[value=pause]")
	w.press(kb.Enter)
	w.said("The schedule is paused")
	w.said("These runs are skipped")
	w.tabTo("main button[value=resume]")
	w.press(kb.Enter)
	w.said("Schedule resumed.")
	w.visit("/console/schedules?tz=utc")
	w.said("at 09:00, on Monday, Europe/Berlin")
	w.screen("schedules")
}

// TestConsole_Policy makes a rule stricter: it lists the scheduled pushes that do not fit, and moves them when the rule
// is in force.
func TestConsole_Policy(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	noon := tomorrowNoon()
	var booked []client.Push
	for i := range 2 {
		one, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Message: client.Message{"title": "News"}, SendAt: noon.Add(time.Duration(i) * time.Hour)})
		testenv.Check(t, err)
		booked = append(booked, one)
	}
	w := b.signIn("admin")

	w.visit("/console/policy?tz=utc")
	w.shown("legend", "per-day")
	w.fill("[id='rules[1].limit']", "1")
	w.click("button", "Preview")
	w.said("1 scheduled message breaks the new limits:")
	w.said("per-day: 1")
	w.shown("[aria-label='Messages that break the new limits'] td a[href*='" + booked[1].ID + "']")
	w.screen("policy")
	w.do("move what does not fit", chromedp.SetValue("#f-apply", "reslot"))
	w.tabTo("main button[value=save]")
	w.press(kb.Enter)
	w.said("of the policy is active.")
	w.said("Last change, applied to scheduled messages")
	b.until("the message is moved", func() bool {
		one, err := b.client().Pushes.Get(t.Context(), booked[1].ID)
		testenv.Check(t, err)
		return one.SendAt.Equal(noon.Add(24 * time.Hour))
	})
	operation := eval[string](w, `new URLSearchParams(location.search).get("operation")`)
	b.until("all is looked at", func() bool {
		o, err := b.client().Policy.GetOperation(t.Context(), operation)
		testenv.Check(t, err)
		return o.Status == client.OperationStatusFinished
	})
	w.click("a", "Refresh")
	w.shown("#carried + p", "1 moved")
	w.said("Versions")
	w.shown("td", "active")
}
