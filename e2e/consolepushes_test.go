package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Pushes finds pushes, moves one after a look whether its new time is free, cancels it, and cancels all of a category.
func TestConsole_Pushes(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	noon := tomorrowNoon()
	book := func(recipient, category string, at time.Time) client.Push {
		one, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: recipient, Category: category, Message: client.Message{"title": "Sale"}, SendAt: at})
		testenv.Check(t, err)
		return one
	}
	one := book("anna", "news", noon)
	book("anna", "news", noon.Add(time.Hour))
	for i := range 30 {
		book(fmt.Sprint("buyer-", i), "sale", noon)
	}
	w := b.signIn("sender")

	w.visit("/console/pushes?tz=utc")
	w.said("buyer-1")
	w.screen("pushes")
	w.tabTo("#f-recipient")
	w.press("anna", kb.Enter)
	w.until(`location.search.includes("recipient=anna")`)
	w.until(`document.readyState === "complete" && document.querySelectorAll("main tbody tr").length === 2`)
	w.click("a[href*='" + one.ID + "']")
	w.shown("h1", "Message for anna")
	w.screen("push")

	w.expect("status of 409") // the time is taken
	w.set("#f-move_to", noon.Add(time.Hour+20*time.Second).Format("2006-01-02T15:04:05"))
	w.click("button", "Check time")
	w.said("per-minute")
	w.set("#f-move_to", noon.Add(2*time.Hour).Format("2006-01-02T15:04:05"))
	w.click("button", "Check time")
	w.said("It can be moved to " + stamp(noon.Add(2*time.Hour)))
	if looked, err := b.client().Pushes.Get(t.Context(), one.ID); err != nil || !looked.SendAt.Equal(noon) {
		t.Errorf("a look moved it to %s, %v", looked.SendAt, err)
	}
	w.tabTo("main button[value=move]")
	w.press(kb.Enter)
	w.said("The message for anna is moved to " + stamp(noon.Add(2*time.Hour)))
	w.click("summary", "As API call")
	w.shown(".calls h2", "What you just did")
	w.shown(".calls pre", "curl -sS -X PATCH")
	w.axe()
	w.click("button", "Cancel message")
	w.said("The message for anna is canceled and no longer counts towards limits.")
	if ended, err := b.client().Pushes.Get(t.Context(), one.ID); err != nil || ended.Status != client.PushStatusCanceled || !ended.SendAt.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("%+v, %v", ended, err)
	}

	w.visit("/console/pushes?tz=utc&category=sale")
	w.click("a", "Cancel or reschedule messages")
	w.click("button", "Preview")
	w.said("30 messages match now")
	w.screen("pushes-bulk")
	w.click("button", "Cancel 30 messages")
	w.until(`location.pathname.startsWith("/console/pushes/bulk/")`)
	w.shown("[role=status]", "Canceled: 30 of 30.") // by itself
	w.until(`!(` + find("button", "Stop") + `)`)
	w.screen("pushes-bulk-change")
	if left := testenv.Query[string](t, b.Database, `SELECT string_agg(DISTINCT recipient, ' ') FROM pushes WHERE status = 'scheduled'`); left != "anna" {
		t.Errorf("what is left is for %q", left)
	}
	b.wantAudited()
}

// TestConsole_Failures groups what a provider refused, in plain words, and retries a group through the quota after a
// preview. Several steps run one after the other without a click.
func TestConsole_Failures(t *testing.T) {
	allOnly(t)
	t.Parallel()
	const refused = 230 // more than one step
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	var batch client.NewBatch
	for i := range refused {
		batch.Pushes = append(batch.Pushes, client.NewPush{Recipient: fmt.Sprint("user-", i), Message: client.Message{"do": "404"}})
	}
	made, err := b.client().Pushes.SubmitBatch(t.Context(), "", batch)
	if err != nil || made.Accepted != refused {
		t.Fatalf("%d are accepted, %v", made.Accepted, err)
	}
	failed := func() int64 {
		return testenv.Query[int64](t, b.Database, `SELECT count(*) FROM pushes WHERE status = 'failed'`)
	}
	b.until("all are refused", func() bool { return failed() == refused })
	for i := range 3 { // so that this one's day is full
		_, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "user-7", Message: client.Message{}, SendAt: time.Now().Add(time.Duration(i+2) * time.Hour)})
		testenv.Check(t, err)
	}
	w := b.signIn("sender")

	w.visit("/console/failures?tz=utc")
	w.shown("h2", "push: the provider answered 404")
	w.said(fmt.Sprint(refused, " messages"))
	w.said("The provider refused the message permanently")
	w.screen("failures")
	w.click("button", "Preview a retry of all")
	w.said(fmt.Sprint(refused, " checked."))
	w.said("Nothing was scheduled yet.")
	w.until(fact("Would be accepted", refused-1))
	w.until(fact("Would be refused", "1: limit reached: per-day"))
	w.screen("failures-retry")
	if n := testenv.Query[int64](t, b.Database, `SELECT count(*) FROM pushes`); n != refused+3 {
		t.Errorf("a look booked something: there are %d pushes", n)
	}
	w.click("button", "Retry all now")
	w.until(fact("Accepted", refused-1))
	w.until(fact("Refused", "1: limit reached: per-day"))
	w.shown("a", "Back to failures")
	b.until("the retries are refused too", func() bool { return failed() == 2*refused-1 })
	once(t, b.provider.Arrivals(), 2*refused-1)
	b.wantAudited()
}

// fact is an expression of JavaScript: whether a list of facts says this of a name.
func fact(name string, says any) string {
	return fmt.Sprintf(`[...document.querySelectorAll("dl.facts dt")].some(e => e.innerText === %q && e.nextElementSibling.innerText === %q)`, name, fmt.Sprint(says))
}
