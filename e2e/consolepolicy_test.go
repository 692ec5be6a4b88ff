package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_PolicyVersions tries a rule as a shadow, enforces it after its refusals are known, and goes back to an
// older version. A concurrent change by another user is not overwritten.
func TestConsole_PolicyVersions(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	w := b.signIn("editor")
	forecast := func(says string) {
		t.Helper()
		w.click("button", "Preview")
		w.said(says)
	}
	save := func() {
		t.Helper()
		w.tabTo("main button[value=save]")
		w.press(kb.Enter)
	}
	inForce := func() client.Policy {
		t.Helper()
		p, err := b.client().Policy.Get(t.Context())
		testenv.Check(t, err)
		return p
	}

	w.visit("/console/policy?tz=utc")
	w.said("the default from the operator’s settings file")
	w.said("No rule in test mode would have blocked a message.")
	w.fill("[id='rules[2].name']", "per-hour")
	w.fill("[id='rules[2].limit']", "1")
	w.fill("[id='rules[2].window']", "1h")
	w.click("[name='rules[2].shadow']")
	forecast("All scheduled messages keep within the new limits.")
	if now := inForce(); len(now.Rules) != 2 {
		t.Errorf("a forecast changed the policy: %+v", now.Rules)
	}
	save()
	w.said("Version 1 of the policy is active.")
	noon := tomorrowNoon()
	for i := range 2 {
		_, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Category: "news", Message: client.Message{"title": "News"}, SendAt: noon.Add(time.Duration(i) * 20 * time.Minute)})
		testenv.Check(t, err)
	}
	w.visit("/console/policy?tz=utc")
	w.reload(`document.querySelector("[aria-label='Rules in test mode'] tbody")?.innerText.match(/per-hour\s+news\s+1/)`)
	w.screen("")

	w.click("[name='rules[2].shadow']")
	forecast("1 scheduled message breaks the new limits:")
	w.said("per-hour: 1")
	save()
	w.said("Version 2 of the policy is active.")
	if now := inForce(); now.Version != 2 || now.Rules[2].Shadow {
		t.Errorf("in force is %+v", now)
	}
	w.tabTo("[aria-label=Versions] a[href*='version=1']")
	w.press(kb.Enter)
	w.said("The editor shows version 1.")
	if shadow := eval[bool](w, `document.querySelector("[name='rules[2].shadow']").checked`); !shadow {
		t.Error("the editor does not show version 1")
	}
	forecast("All scheduled messages keep within the new limits.")
	save()
	w.said("Version 3 of the policy is active.")
	w.said("3 (active)")
	w.shown("[aria-label=Versions] td", "editor@example.com")
	if now := inForce(); now.Version != 3 || !now.Rules[2].Shadow {
		t.Errorf("in force is %+v", now)
	}
	w.visit("/console/policy?tz=utc")
	w.screen("")
	eval[bool](w, `!document.querySelector("[aria-label='Rules in test mode']").scrollIntoView({block: "center"})`)
	w.screenshot("policy-versions")

	w.fill("[id='rules[0].limit']", "5")
	forecast("All scheduled messages keep within the new limits.")
	other, err := b.client().Policy.Put(t.Context(), client.NewPolicy{Rules: []client.NewRule{{Name: "per-day", Limit: 2, Window: "24h"}}}, client.PolicyOptions{})
	testenv.Check(t, err)
	w.expect("status of 412")
	save()
	w.shown("[role=alert]", "Another user changed this")
	w.said("Active: version 4")
	if typed := eval[string](w, `document.querySelector("[id='rules[0].limit']").value`); typed != "5" {
		t.Errorf("of what was typed is left %q", typed)
	}
	if now := inForce(); now.Version != other.Version {
		t.Errorf("version %d overwrote %d", now.Version, other.Version)
	}
	w.screen("")
	w.visit("/console/policy?tz=utc")
	w.click("summary", "Reset to default")
	w.click("button", "Remove your own policy")
	w.said("The default policy is active again.")
	if now := inForce(); len(now.Rules) != 2 {
		t.Errorf("in force is %+v", now)
	}
}
