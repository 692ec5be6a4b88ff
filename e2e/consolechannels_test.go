package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Channels shows a working channel and one whose provider is down, in words. A test message goes through
// the quota like any other push, and its page shows the outcome.
func TestConsole_Channels(t *testing.T) {
	allOnly(t)
	t.Parallel()
	const away = `
  sms: {type: webhook, url: "http://127.0.0.1:1/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 1s, backoff: {first: 200ms, max: 1s}}
  log: {type: log}`
	b := setupWith(t, options{config: strings.NewReplacer("{name: per-minute, limit: 1, window: 1m}", "{name: per-hour, limit: 1, window: 1h}", "\n  log: {type: log}", away).Replace(consoleConfig)})
	b.StartAPI()
	b.Start("worker")
	for i := range 24 { // more attempts than a breaker needs
		_, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: fmt.Sprint("user-", i), Channel: []string{"push", "sms"}[i%2], Message: client.Message{"title": "Hello"}})
		testenv.Check(t, err)
	}
	b.until("the provider that is there has them", func() bool { return len(b.provider.Arrivals()) == 12 })
	w := b.signIn("sender")

	w.visit("/console/settings/channels?tz=utc")
	const push, sms = `[aria-labelledby="c-push"]`, `[aria-labelledby="c-sms"]`
	says := func(card, words string) string {
		return fmt.Sprintf("document.querySelector(%q).innerText.includes(%q)", card, words)
	}
	w.reload(says(push, "Working normally.") + "&&" + says(push, "12 delivered") + "&&" + says(sms, "The provider is down") + "&&" + says(sms, "12 of your messages"))
	w.screen("settings-channels")

	w.tabTo(push + " summary")
	w.press(kb.Enter)
	w.expect("status of 409") // user-0 has a push of this hour
	w.tabTo("#r-push")
	w.press("user-0", kb.Enter)
	w.shown("[role=alert]", "per-hour")
	if typed := eval[string](w, `document.querySelector("#r-push").value`); typed != "user-0" {
		t.Errorf("of what was typed is left %q", typed)
	}
	w.screen("")
	w.until(find("#r-push")) // the form is open still
	w.fill("#r-push", "me")
	w.click(push+" button", "Send test message")
	w.shown("h1", "Message for me")
	w.said("Test message to me sent")
	w.reload(`document.querySelector(".status-sent")`)
	b.until("the test message has come", func() bool { return len(b.provider.Arrivals()) == 13 })
	if last := b.provider.Arrivals()[12]; last.Recipient != "me" || !strings.Contains(string(last.Message), "Test of the channel push") {
		t.Errorf("%s got %s", last.Recipient, last.Message)
	}
}
