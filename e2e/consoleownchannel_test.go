package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_OwnChannel makes a channel of the team with the keyboard: every error is at its field, and what was typed is left, except secrets.
// It is tested, disabled, and deleted with the message that is scheduled for it. All states of the page are accessible.
func TestConsole_OwnChannel(t *testing.T) {
	allOnly(t)
	t.Parallel()
	inbox := newInbox(t)
	b := setupWith(t, options{config: consoleConfig + "tenant_channels: {allow_private_addresses: true}\n"})
	b.StartAPI()
	b.Start("worker")
	w := b.signIn("admin")
	w.visit("/console/settings/channels")
	w.click("a", "New channel")
	w.shown("h1", "New channel")
	w.tabTo("main form button")
	w.press(kb.Enter)
	w.until(find("#f-url"))
	w.fill("#f-name", "Our hook")
	w.fill("#f-url", "ftp://example.com/hush")
	w.fill("#f-secret", "short-hush")
	w.expect("status of 422")
	w.click("button", "Create channel")
	w.shown("[role=alert]", "Check 3 fields: Name, URL, Secret.")
	w.screen("")
	for field, left := range map[string]string{"#f-name": "Our hook", "#f-url": "", "#f-secret": ""} {
		if typed := eval[string](w, `document.querySelector("`+field+`").value`); typed != left {
			t.Errorf("%s has %q, want %q", field, typed, left)
		}
	}
	if strings.Contains(eval[string](w, "document.documentElement.outerHTML"), "hush") {
		t.Error("the page has a secret")
	}
	w.fill("#f-name", "hook")
	w.fill("#f-url", inbox.URL)
	w.fill("#f-secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	w.click("button", "Create channel")
	w.shown("h1", "hook")
	w.said("Channel created")
	w.fill(`[name="message.body"]`, "Does it arrive?")
	w.click("button", "Send test message")
	w.said("9 tests left in this hour")
	w.screen("")
	if got := inbox.of("Does it arrive?"); len(got) != 1 || !got[0].signed(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") {
		t.Errorf("the provider got %d signed tests", len(got))
	}
	w.click("button", "Disable")
	w.said("It is disabled. Its messages wait")
	w.screen("")
	status, answer := b.call("POST", "/v1/pushes", object{"recipient": "anna", "channel": "hook", "message": object{"body": "later"}})
	if status != 201 {
		t.Fatal(answer)
	}
	w.click("summary", "Delete channel")
	w.click("button", "Delete channel")
	w.said("1 message is scheduled for this channel.")
	w.screen("")
	w.click("button", "Cancel 1 message and delete the channel")
	w.said("Channel deleted, and 1 message canceled.")
	now, err := b.client().Pushes.Get(t.Context(), answer["id"].(string))
	testenv.Check(t, err)
	if now.Status != "canceled" || len(inbox.of("later")) > 0 {
		t.Errorf("the message is %s", now.Status)
	}
}
