package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/testenv"
)

// keeps wants that fields have what was typed into them, after a form was not accepted.
func (w *window) keeps(fields map[string]string) {
	w.t.Helper()
	for field, want := range fields {
		if got := w.field(field); got != want {
			w.t.Errorf("%s has %q, want %q", field, got, want)
		}
	}
}

// TestConsole_CampaignFaults: at each step of a draft, what is wrong stands at its field, and nothing that was typed is lost; a large list that is not
// the one whose columns were named is told apart when it has arrived, and the audience stays as it was.
func TestConsole_CampaignFaults(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	list, other := filepath.Join(t.TempDir(), "winter.csv"), filepath.Join(t.TempDir(), "spring.csv")
	write(t, list, "Customer ID,First name\nanna,Anna\nbert,Bert\n")
	var long strings.Builder
	long.WriteString("Customer ID,Town\n")
	for i := range 100_000 {
		fmt.Fprintf(&long, "user-%d,%s\n", i, strings.Repeat("a town with a long name ", 5))
	}
	write(t, other, long.String())
	w := b.signIn("sender")
	w.expect("status of 422")

	w.visit("/console/campaigns/new?tz=utc")
	w.tabTo("#f-name")
	w.press("Winter sale")
	w.tabTo("[id='f-message.title']")
	w.press("Hi {{ first_name")
	w.tabTo("[id='f-message.body']")
	w.press("It begins today.")
	w.tabTo("main form button:not([name])")
	w.press(kb.Enter)
	w.shown("[id='fault-message.title']")
	w.keeps(map[string]string{"#f-name": "Winter sale", "[id='f-message.title']": "Hi {{ first_name", "[id='f-message.body']": "It begins today."})
	w.screen("")
	w.fill("[id='f-message.title']", "Hi {{ first_name }}")
	w.click("details:has(#f-more) summary")
	w.fill("#f-more", "[1")
	w.click("button", "Keep the message")
	w.shown("[id='fault-message.more']")
	w.keeps(map[string]string{"#f-name": "Winter sale", "[id='f-message.title']": "Hi {{ first_name }}", "#f-more": "[1"})
	w.fill("#f-more", `{"data": {"screen": "sale"}}`)
	w.click("button", "Keep the message")

	w.choose("#f-look", list)
	w.said("Say what the columns are")
	w.choose("#f-file", other)
	w.fill("[name='name[1]']", "given_name")
	w.click("button", "Send the list")
	w.said("other columns")
	w.keeps(map[string]string{"[name='name[1]']": "given_name", "[name='as[0]']": "recipient"})
	w.said("Nobody is in the audience yet")
	w.screen("")
	w.fill("[name='name[1]']", "first_name")
	w.choose("#f-file", list)
	w.click("button", "Send the list")
	w.said("2 recipients are in the audience")

	w.click("a", "On to the time")
	w.click("[name=when][value=at]")
	w.set("#f-send_at", "2020-01-01T09:00:00")
	w.fill("#f-spread", "two hours")
	w.do("defer", chromedp.SetValue("#f-conflict", "defer"))
	w.click("button", "Keep the time")
	w.shown("#fault-spread")
	w.shown("#fault-send_at")
	w.keeps(map[string]string{"#f-send_at": "2020-01-01T09:00", "#f-spread": "two hours", "#f-conflict": "defer", "[name=when]:checked": "at"})
	w.screen("")
	w.set("#f-send_at", tomorrowNoon().Format("2006-01-02T15:04:05"))
	w.fill("#f-spread", "2h")
	w.click("button", "Keep the time")
	w.said("If nothing else is submitted in between")

	id := testenv.Query[string](t, b.Database, `SELECT id::text FROM campaigns`)
	w.visit("/console/calendar/campaigns/" + id + "?tz=utc")
	w.set("#f-to", "2020-01-01T09:00:00")
	w.click("button", "Show what would change")
	w.shown("#fault-to", "in the past")
	w.keeps(map[string]string{"#f-to": "2020-01-01T09:00"})
	w.screen("")
	w.visit("/console/campaigns/" + id + "?tz=utc")
	w.said("Hi {{ first_name }}")
	w.said("at one moment")
	w.screen("campaign-draft")
}
