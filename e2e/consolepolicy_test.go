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
		w.click("button", "See what it would change")
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
	w.said("the operator’s, from the file of settings")
	w.said("No shadow rule would have refused anything.")
	w.fill("[id='rules[2].name']", "per-hour")
	w.fill("[id='rules[2].limit']", "1")
	w.fill("[id='rules[2].window']", "1h")
	w.click("[name='rules[2].shadow']")
	forecast("All pushes that wait fit into it.")
	if now := inForce(); len(now.Rules) != 2 {
		t.Errorf("a forecast changed the policy: %+v", now.Rules)
	}
	save()
	w.said("Version 1 of the policy is in force.")
	noon := tomorrowNoon()
	for i := range 2 {
		_, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Category: "news", Message: client.Message{"title": "News"}, SendAt: noon.Add(time.Duration(i) * 20 * time.Minute)})
		testenv.Check(t, err)
	}
	w.visit("/console/policy?tz=utc")
	w.reload(`document.querySelector("[aria-label='Shadow rules'] tbody")?.innerText.match(/per-hour\s+news\s+1/)`)
	w.screen("")

	w.click("[name='rules[2].shadow']")
	forecast("1 push that waits does not fit into it:")
	w.said("per-hour: 1")
	save()
	w.said("Version 2 of the policy is in force.")
	if now := inForce(); now.Version != 2 || now.Rules[2].Shadow {
		t.Errorf("in force is %+v", now)
	}
	w.tabTo("[aria-label=Versions] a[href*='version=1']")
	w.press(kb.Enter)
	w.said("The editor shows version 1.")
	if shadow := eval[bool](w, `document.querySelector("[name='rules[2].shadow']").checked`); !shadow {
		t.Error("the editor does not show version 1")
	}
	forecast("All pushes that wait fit into it.")
	save()
	w.said("Version 3 of the policy is in force.")
	w.said("3 (in force)")
	w.shown("[aria-label=Versions] td", "editor@example.com")
	if now := inForce(); now.Version != 3 || !now.Rules[2].Shadow {
		t.Errorf("in force is %+v", now)
	}
	w.visit("/console/policy?tz=utc")
	w.screen("")
	eval[bool](w, `!document.querySelector("[aria-label='Shadow rules']").scrollIntoView({block: "center"})`)
	w.screenshot("policy-versions")

	w.fill("[id='rules[0].limit']", "5")
	forecast("All pushes that wait fit into it.")
	other, err := b.client().Policy.Put(t.Context(), client.NewPolicy{Rules: []client.NewRule{{Name: "per-day", Limit: 2, Window: "24h"}}}, client.PolicyOptions{})
	testenv.Check(t, err)
	w.expect("status of 412")
	save()
	w.shown("[role=alert]", "Somebody else has changed this")
	w.said("In force: version 4")
	if typed := eval[string](w, `document.querySelector("[id='rules[0].limit']").value`); typed != "5" {
		t.Errorf("of what was typed is left %q", typed)
	}
	if now := inForce(); now.Version != other.Version {
		t.Errorf("version %d overwrote %d", now.Version, other.Version)
	}
	w.screen("")
	w.visit("/console/policy?tz=utc")
	w.click("summary", "Go back to the operator’s policy")
	w.click("button", "Remove your own policy")
	w.said("The operator’s policy is in force again.")
	if now := inForce(); len(now.Rules) != 2 {
		t.Errorf("in force is %+v", now)
	}
}
