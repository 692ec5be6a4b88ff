package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// inbox is a team's endpoint: it records its requests, and answers as configured.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []delivered
}

// delivered is one request to an inbox.
type delivered struct {
	id     string // of the event
	body   []byte
	header http.Header
}

func newInbox(t *testing.T) *inbox {
	i := &inbox{status: http.StatusNoContent}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.got = append(i.got, delivered{r.Header.Get("Webhook-Id"), body, r.Header})
		w.WriteHeader(i.status)
	}))
	t.Cleanup(i.Close)
	return i
}

// answer has it answer with a status from now on.
func (i *inbox) answer(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status = status
}

// of are the requests whose body has a part.
func (i *inbox) of(part string) (all []delivered) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.got {
		if strings.Contains(string(d.body), part) {
			all = append(all, d)
		}
	}
	return all
}

// signed reports whether a secret verifies a request.
func (d delivered) signed(t *testing.T, secret string) bool {
	t.Helper()
	v, err := standardwebhooks.NewWebhook(secret)
	testenv.Check(t, err)
	return v.Verify(d.body, d.header) == nil
}

// TestConsole_Webhooks makes a webhook and tries it, reads what was sent to it and sends one event again, replaces its secret, and
// switches it on again after its endpoint was gone. Secrets are shown once.
func TestConsole_Webhooks(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig + "webhooks: {timeout: 5s, allow_private_addresses: true}\n"})
	b.StartAPI()
	b.Start("worker")
	endpoint := newInbox(t)
	w := b.signIn("admin")

	w.visit("/console/settings/webhooks?tz=utc")
	w.expect("status of 422") // no address
	w.tabTo("#f-url")
	w.press("ftp://example.com/hook", kb.Enter)
	w.shown("#fault-url")
	w.screen("")
	w.fill("#f-url", endpoint.URL+"/hooks/sendquota")
	w.press(kb.Enter)
	w.said("This is the secret that verifies signatures.")
	secret := w.text("pre.secret")
	w.visit("/console/settings/webhooks?tz=utc")
	w.shown("td a", "/hooks/sendquota")
	w.never(secret)
	w.screen("settings-webhooks")

	w.tabTo("main td a")
	w.press(kb.Enter)
	w.said("No delivery matches this filter.")
	w.never(secret)
	w.tabTo("button[value=test]")
	w.press(kb.Enter)
	w.said("Test event sent")
	b.until("the test event has come", func() bool { return len(endpoint.of("webhook.test")) == 1 })
	if !endpoint.of("webhook.test")[0].signed(t, secret) {
		t.Error("the secret that was shown does not verify the test event")
	}
	page := eval[string](w, "location.pathname") + "?tz=utc"
	rows := `document.querySelectorAll("[aria-label=Deliveries] tbody tr")`
	w.reload(rows + `.length === 1 && ` + rows + `[0].innerText.includes("delivered")`)

	sent, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Message: client.Message{"title": "Hello"}})
	testenv.Check(t, err)
	b.until("both events of the message have come", func() bool { return len(endpoint.of(sent.ID)) == 2 })
	w.reload(rows + `.length === 3 && [...` + rows + `].every(r => r.innerText.includes("delivered"))`)
	w.screen("settings-webhook")
	w.shown("td a[href*='"+sent.ID+"']", "a message")
	w.tabTo("#f-status")
	w.tabTo("#f-event")
	w.press("push.sent", kb.Enter)
	w.until(`location.search.includes("event=push.sent") && document.readyState === "complete" && ` + rows + `.length === 1`)
	w.tabTo("button[value=replay]")
	w.press(kb.Enter)
	w.said("Event queued to be sent again.")
	b.until("the event has come once more", func() bool { return len(endpoint.of("push.sent")) == 2 })
	if again := endpoint.of("push.sent"); again[0].id != again[1].id || string(again[0].body) != string(again[1].body) {
		t.Errorf("%s was sent again as %s", again[0].id, again[1].id)
	}

	w.click("summary", "Rotate secret or delete")
	w.click("button", "Rotate secret")
	w.said("This is the new secret")
	next := w.text("pre.secret")
	w.screen("")
	if next == secret {
		t.Error("the secret is the old one")
	}
	w.visit(page)
	w.never(next)
	w.click("button", "Send a test event")
	w.said("Test event sent")
	b.until("the second test event has come", func() bool { return len(endpoint.of("webhook.test")) == 2 })
	if !endpoint.of("webhook.test")[1].signed(t, next) {
		t.Error("the new secret does not verify")
	}

	endpoint.answer(http.StatusGone)
	w.visit(page)
	w.click("button", "Send a test event")
	w.said("Test event sent")
	w.reload(`document.querySelector(".status-disabled") && ` + rows + `[0].innerText.includes("failed")`)
	w.said("410")
	w.screen("")
	endpoint.answer(http.StatusNoContent)
	w.click("button", "Enable")
	w.said("Webhook enabled.")
	w.shown(".status-enabled")
	w.click("button", "Resend failed events")
	w.said("1 failed event queued to be sent again.")
	b.until("the event that had failed has come", func() bool { return len(endpoint.of("webhook.test")) == 4 })
	w.click("summary", "Rotate secret or delete")
	w.click("button", "Delete webhook")
	w.said("Webhook deleted.")
	w.said("No webhooks yet.")
}

// never wants that a text stands nowhere in the page, shown or not.
func (w *window) never(text string) {
	w.t.Helper()
	if text == "" || eval[bool](w, fmt.Sprintf("document.documentElement.outerHTML.includes(%q)", text)) {
		w.t.Errorf("the page has %q", text)
	}
}

// reload shows the page again until an expression of JavaScript is true of it.
func (w *window) reload(js string) {
	w.t.Helper()
	path := eval[string](w, "location.pathname + location.search")
	testenv.UntilWhole(w.t, 10*pollInterval, func() string {
		if w.visit(path); eval[bool](w, "!!("+js+")") {
			return ""
		}
		return "in the page: " + js + "\n" + w.shownNow()
	})
}
