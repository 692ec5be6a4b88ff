package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// download clicks a link to a file, and returns its name and what is in it.
func (w *window) download(selector, part string) (name, text string) {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "download")
	testenv.Check(w.t, err)
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	_, err = chromedp.CallBrowser(w.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(w.ctx).BrowserContextID, DownloadPath: dir,
	})
	testenv.Check(w.t, err)
	w.click(selector, part)
	testenv.Until(w.t, pollInterval, "the file is there", func() bool {
		files, err := os.ReadDir(dir)
		testenv.Check(w.t, err)
		for _, f := range files {
			if name = f.Name(); !strings.HasSuffix(name, ".crdownload") && !strings.HasPrefix(name, ".") {
				return true
			}
		}
		return false
	})
	all, err := os.ReadFile(filepath.Join(dir, name))
	testenv.Check(w.t, err)
	return name, string(all)
}

// TestConsole_CampaignCanceled pauses a running campaign, resumes it, and cancels it after a preview, by keyboard
// alone. Then its places are free for others, and a file lists the outcome of each recipient.
func TestConsole_CampaignCanceled(t *testing.T) {
	allOnly(t)
	t.Parallel()
	const people, busy = 40, 30
	b := setupWith(t, options{config: strings.Replace(consoleConfig, "{name: per-minute, limit: 1, window: 1m}", "{name: per-hour, limit: 1, window: 1h}", 1)})
	b.StartAPI()
	b.Start("worker")
	audience := "recipient\n"
	var taken client.NewBatch // those who are busy get it later
	for i := range people {
		audience += fmt.Sprintf("user-%d\n", i)
		if i < busy {
			taken.Pushes = append(taken.Pushes, client.NewPush{Recipient: fmt.Sprintf("user-%d", i), Channel: "log", Message: client.Message{"title": "News"}, SendAt: time.Now().Add(30 * time.Minute)})
		}
	}
	if made, err := b.client().Pushes.SubmitBatch(t.Context(), "", taken); err != nil || made.Accepted != busy {
		t.Fatal(made.Accepted, err)
	}
	one := b.started(client.NewCampaign{Name: "Winter sale", OnConflict: "defer"}, audience)
	b.until("all others have it", func() bool { return len(b.provider.Arrivals()) == people-busy })
	w := b.signIn("sender")
	status := func(s string) { w.until(`document.querySelector("#progress .status")?.innerText === "` + s + `"`) } // without loading a page

	w.visit("/console/campaigns/" + one.ID + "?tz=utc")
	w.said("10 of 40 sent")
	w.tabTo("form[action*='/pause'] button")
	w.press(kb.Enter)
	w.said("Campaign paused")
	status("paused")
	w.screen("campaign-paused")
	w.tabTo("form[action*='/resume'] button")
	w.press(kb.Enter)
	w.said("Campaign resumed.")
	status("sending")

	w.tabTo("a[href*='/cancel']")
	w.press(kb.Enter)
	w.shown("h1", "Cancel Winter sale?")
	w.said("30 recipients will not get the message.")
	w.said("30 of them are scheduled: the reserved capacity becomes free for other messages.")
	w.said("10 were sent it already and still count towards their limits.")
	w.screen("campaign-cancel")
	w.click("a", "Keep the campaign")
	status("sending")
	w.tabTo("a[href*='/cancel']")
	w.press(kb.Enter)
	w.tabTo("button.danger")
	w.press(kb.Enter)
	w.said("30 recipients do not get it; 30 scheduled messages are being removed")
	status("canceled")
	w.said("The campaign was canceled: 30 recipients do not get it. Their reserved capacity is free again.")
	w.until(`!(` + find("button", "Pause") + `) && !(` + find("a", "Cancel …") + `)`)
	w.screen("")

	var place time.Time
	for push, err := range b.client().Pushes.List(t.Context(), client.PushesOptions{Status: client.PushStatusCanceled}) {
		testenv.Check(t, err)
		place = push.SendAt
		again, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: push.Recipient, Message: client.Message{"title": "Another"}, SendAt: place})
		if err != nil || !again.SendAt.Equal(place) {
			t.Errorf("the place of %s at %s was not given back: %v", push.Recipient, place, err)
		}
		break
	}
	name, text := w.download("a", "Export as CSV")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); name != "recipients.csv" || len(lines) != people+1 || !strings.HasPrefix(lines[0], "\uFEFFrecipient;line;outcome") {
		t.Errorf("%s has %d lines:\n%s", name, len(lines), text)
	}
	if sent, canceled := strings.Count(text, ";sent;"), strings.Count(text, ";canceled;"); sent != people-busy || canceled != busy {
		t.Errorf("the file lists %d sent and %d canceled:\n%s", sent, canceled, text)
	}
	if name, text := w.download("a", "as NDJSON"); name != "recipients.ndjson" || strings.Count(text, `"outcome":"canceled"`) != busy {
		t.Errorf("%s:\n%s", name, text)
	}
	b.wantAudited()
}
