package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// choose chooses a file in a field, as a person does in the dialog of the browser.
func (w *window) choose(selector, path string) {
	w.t.Helper()
	w.shown(selector)
	w.do("choose a file", chromedp.SetUploadFiles(selector, []string{path}))
}

// TestConsole_Campaign takes a list to a finished campaign with nothing but the browser: each recipient gets the message once.
func TestConsole_Campaign(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	list := filepath.Join(t.TempDir(), "winter.csv")
	text := "Customer ID;First name;City;Internal\r\n"
	for i := range 30 {
		text += fmt.Sprintf("user-%d;Name %d;Tokyo;x\r\n", i, i)
	}
	write(t, list, text+"user-7;Again;Oslo;x\r\nuser-31;Too few\r\n")

	w := b.signIn("sender")
	taken := time.Now().UTC().Add(2 * time.Hour).Truncate(time.Minute)
	for i := range 5 {
		status, answer := b.call("POST", "/v1/pushes", object{"recipient": fmt.Sprintf("user-%d", i), "send_at": taken.Format(time.RFC3339), "message": object{"title": "Another"}})
		if status != 201 {
			t.Fatal(status, answer)
		}
	}
	w.visit("/console/campaigns?tz=utc")
	w.screen("")
	w.click("a", "New campaign")
	w.fill("#f-name", "Winter sale")
	w.fill("[id='f-message.title']", "Hi {{ first_name }}")
	w.fill("[id='f-message.body']", "New in {{ town }}: our winter sale begins today.")
	w.screen("campaign-message")
	w.click("button", "Save and continue")

	w.said("The audience is empty")
	w.choose("#f-look", list)
	w.said("Match the columns")
	w.said("Name 1")
	w.fill("[name='name[2]']", "town")
	w.do("leave a column out", chromedp.SetValue("[name='as[3]']", "nothing"))
	w.screen("campaign-audience")
	w.click("button", "Upload list")
	w.said("30 recipients are in the audience")
	w.said("has 2 cells, and the header 4")
	w.screen("campaign-bad-lines")
	w.click("a", "Continue to preview")
	w.said("Hi Name 0")
	w.said("New in Tokyo")
	w.said("Longest values")
	w.screen("campaign-preview")

	w.click("a", "Continue to time")
	w.click("[name=when][value=at]")
	eval[string](w, `document.querySelector("#f-send_at").value = "`+taken.Format("2006-01-02T15:04")+`"`) // how it is typed is a matter of the browser's language
	w.do("defer", chromedp.SetValue("#f-conflict", "defer"))
	w.screen("campaign-when")
	w.click("button", "Save and check")
	w.said("Nothing has been scheduled yet")
	if bars := eval[int](w, `document.querySelectorAll("svg.histogram rect").length`); bars != 7 {
		t.Errorf("the histogram has %d bars", bars)
	}
	w.said("5\nlater than planned")
	w.screen("campaign-simulation")
	w.click("button", "Use this time")
	w.said("Saved the new time")
	w.said("30\non time")
	w.click("a", "Edit time")
	w.click("[name=when][value=start]")
	w.click("button", "Save and check")
	w.said("30\non time")
	w.click("a", "Continue to start")
	w.screen("campaign-start")
	w.expect("status of 422") // a wrong number
	w.tabTo("#f-recipients")
	w.press("31", kb.Enter)
	w.said("Nothing was started")
	w.fill("#f-recipients", "30")
	w.press(kb.Enter)
	w.said("Campaign started")
	w.until(`document.querySelector("#progress .status")?.innerText === "sent"`) // without loading the page again
	w.said("30 of 30 sent")
	w.until(`!(` + find("button", "Pause") + `)`)
	w.screen("campaign")
	w.click("a", "Results by person")
	w.said("user-7")
	w.screen("campaign-recipients")
	b.planned(client.NewCampaign{Name: "Spring news", SendAt: tomorrowNoon(), Spread: "2h"}, "recipient\nanna\nbert\n")
	b.started(client.NewCampaign{Name: "Autumn sale", SendAt: tomorrowNoon(), Channel: "log"}, "recipient\nanna\ncarla\n")
	w.visit("/console/campaigns?tz=utc")
	w.said("Spring news")
	w.screen("campaigns")

	once(t, b.provider.Arrivals(), 30)
	for _, a := range b.provider.Arrivals() {
		if !strings.HasPrefix(a.Recipient, "user-") {
			t.Errorf("%+v arrived", a)
		}
	}
	if left := testenv.Query[int](t, b.Database, `SELECT count(*) FROM campaigns WHERE status = 'finished' AND name = 'Winter sale'`); left != 1 {
		t.Errorf("%d campaigns are finished", left)
	}
	b.wantAudited()
}
