package e2e

import (
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Keys makes an API key, which is shown once and opens what it is for, then its successor, and revokes both.
func TestConsole_Keys(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("admin")
	opens := func(key string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, b.api+"/v1/pushes", nil)
		testenv.Check(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		answer, err := httpClient.Do(r)
		testenv.Check(t, err)
		testenv.Check(t, answer.Body.Close())
		return answer.StatusCode
	}

	w.visit("/console/settings/keys?tz=utc")
	w.expect("status of 422") // no scope
	w.tabTo("#f-name")
	w.press("back office", kb.Enter)
	w.shown("#fault-scopes")
	w.screen("")
	w.tabTo("input[value='pushes:read']")
	w.press(" ")
	w.tabTo("main form:last-of-type p button")
	w.press(kb.Enter)
	w.said("This is the new API key")
	w.screen("settings-keys")
	key := w.text("pre.secret")
	copying := func(setting browser.PermissionSetting) {
		chrome := chromedp.FromContext(w.ctx)
		_, err := cdp.Call(w.ctx, chrome.Browser, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: "clipboard-write"}, Setting: setting, BrowserContextID: chrome.BrowserContextID,
		})
		testenv.Check(t, err)
	}
	copying(browser.PermissionSettingDenied)
	w.click("main button", "Copy")
	w.shown("main button", "Selected")
	if selected := eval[string](w, "getSelection().toString()"); selected != key {
		t.Errorf("%q is selected", selected)
	}
	copying(browser.PermissionSettingGranted)
	w.click("main button", "Selected")
	w.shown("main button", "Copied")
	w.click("summary", "As API call")
	w.shown("pre", "/v1/keys")
	if status := opens(key); status != http.StatusOK {
		t.Errorf("the key is answered %d", status)
	}
	w.visit("/console/settings/keys?tz=utc")
	w.shown("td", "back office")
	w.never(key)

	w.click("summary", "Rotate\nback office")
	w.click("button", "Rotate key")
	w.said("This is the new API key")
	successor := w.text("pre.secret")
	if first, second := opens(key), opens(successor); first != http.StatusOK || second != http.StatusOK {
		t.Errorf("the keys are answered %d and %d", first, second)
	}
	for range 2 {
		w.visit("/console/settings/keys?tz=utc")
		w.click("summary", "Revoke\nback office")
		w.tabTo("details[open] button.danger")
		w.press(kb.Enter)
		w.said("Key revoked")
	}
	w.screen("")
	b.until("neither opens anything", func() bool {
		return opens(key) == http.StatusUnauthorized && opens(successor) == http.StatusUnauthorized
	})
}
