package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_FormsSentOnce: of a double click the second counts for nothing, and the value of the button goes along; gone back to, the form
// can be sent again.
func TestConsole_FormsSentOnce(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("admin")
	twice := func(button string) {
		t.Helper()
		eval[bool](w, `(() => {
			window.sent = [];
			addEventListener("submit", (e) => window.sent.push(!e.defaultPrevented && e.submitter.value));
			const button = document.querySelector("`+button+`");
			button.form.requestSubmit(button); button.form.requestSubmit(button);
			sessionStorage.sent = JSON.stringify(window.sent);
			return true;
		})()`)
	}
	once := func(value string) {
		t.Helper()
		if got := eval[string](w, "sessionStorage.sent"); got != `["`+value+`",false]` {
			t.Errorf("the clicks were taken as %s", got)
		}
	}
	w.visit("/console/pushes/new?tz=utc")
	w.fill("#f-recipient", "anna")
	w.fill("[id='f-message.title']", "Hello")
	w.set("#f-send_at", tomorrowNoon().Format("2006-01-02T15:04:05"))
	if both := eval[bool](w, `(() => {
		const taken = [], only = (e) => { taken.push(!e.defaultPrevented); e.preventDefault(); };
		addEventListener("submit", only);
		for (const value of ["check", "submit"]) {
			const button = document.querySelector("button[value=" + value + "]");
			button.form.requestSubmit(button);
		}
		removeEventListener("submit", only);
		dispatchEvent(new PageTransitionEvent("pageshow"));
		return taken.length === 2 && taken[0] && taken[1];
	})()`); !both {
		t.Error("another button of a form that was sent is not taken")
	}
	twice("button[value=submit]")
	w.said("Scheduled for " + stamp(tomorrowNoon()))
	once("submit")
	eval[bool](w, "history.back() ?? true")
	w.shown("#f-send_at")
	w.set("#f-send_at", tomorrowNoon().Add(time.Hour).Format("2006-01-02T15:04:05"))
	w.click("button[value=submit]")
	w.said("Scheduled for " + stamp(tomorrowNoon().Add(time.Hour)))

	w.visit("/console/settings/webhooks")
	w.fill("#f-url", "https://example.com/hook")
	twice("main form button")
	w.shown("pre.secret")
	once("")
	if hooks, err := b.client().Webhooks.List(t.Context()); err != nil || len(hooks.Webhooks) != 1 {
		t.Errorf("%d webhooks, %v", len(hooks.Webhooks), err)
	}
}

// TestConsole_ZoneOfBrowser: a form without any time on its page, too, is drawn by the clocks of the browser, and is read by those that it names.
func TestConsole_ZoneOfBrowser(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("sender")
	in := func(zone string) {
		t.Helper()
		_, err := chromedp.Call(w.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		testenv.Check(t, err)
	}
	in("Europe/Berlin")
	w.visit("/console/pushes/new")
	w.shown("#hint-send_at", "Time zone: Europe/Berlin")
	w.fill("#f-recipient", "anna")
	w.fill("[id='f-message.title']", "Hello")
	day := tomorrowNoon().Format(time.DateOnly)
	w.set("#f-send_at", day+"T09:00:00")
	in("America/New_York")
	w.click("button[value=submit]")
	w.said("Scheduled for")
	berlin, err := time.LoadLocation("Europe/Berlin")
	testenv.Check(t, err)
	want, err := time.ParseInLocation("2006-01-02T15:04", day+"T09:00", berlin)
	testenv.Check(t, err)
	var found client.PushesPage
	testenv.Check(t, b.client().Get(t.Context(), "/v1/pushes", nil, &found))
	if len(found.Pushes) != 1 || !found.Pushes[0].SendAt.Equal(want) {
		t.Errorf("booked: %+v, want one at %s", found.Pushes, want)
	}
	w.visit("/console/pushes/new")
	w.shown("#hint-send_at", "Time zone: America/New_York")
}
