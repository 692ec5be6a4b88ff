package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Proof reads what the last audits of a worker found, follows a check to the guarantee that it is about and to the push that
// broke it, and reads who did what, filtered and as a file.
func TestConsole_Proof(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: strings.Replace(consoleConfig, "delivery: {lease: 30s}", "delivery: {lease: 30s, audit_interval: 1s}", 1)})
	b.StartAPI()
	b.Start("worker")
	soon := time.Now().UTC().Truncate(time.Second).Add(2 * time.Hour) // what is further ahead is not audited in every pass
	var booked []client.Push
	for i := range 2 {
		one, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Message: client.Message{"title": "News"}, SendAt: soon.Add(time.Duration(i) * time.Hour)})
		testenv.Check(t, err)
		booked = append(booked, one)
	}
	b.started(client.NewCampaign{Name: "Autumn sale", SendAt: soon}, "recipient\nbert\ncarl\n")
	w := b.signIn("admin")

	w.visit("/console/proof?tz=utc")
	audits := `document.querySelectorAll("[aria-label=Audits] tbody tr")`
	w.reload(audits + `.length >= 3`)
	if kept := eval[bool](w, `[...`+audits+`].every(r => r.innerText.includes("every guarantee was kept"))`); !kept {
		t.Errorf("an audit found something:\n%s", w.shownNow())
	}
	// Each check stands beside one guarantee, in its words.
	checks := eval[int](w, `document.querySelectorAll("section.card li strong").length`)
	if again := eval[int](w, `new Set([...document.querySelectorAll("section.card li strong")].map(e => e.innerText)).size`); checks < 10 || again != checks {
		t.Errorf("%d checks, %d of them different", checks, again)
	}
	w.shown("#I2 p", "In no window does a recipient have more sends than the limit")
	w.screen("proof")

	testenv.Forge(t, b.Database)
	b.sql(fmt.Sprintf(`UPDATE pushes SET send_at = '%s', next_at = '%[1]s' WHERE id = '%s'`, soon.Add(30*time.Second).Format(time.RFC3339), booked[1].ID))
	w.reload(audits + `[0].innerText.includes("1 violation")`)
	w.screen("")
	w.tabTo("td a[href='#I2']")
	w.press(kb.Enter)
	w.until(`location.hash === "#I2" && document.querySelector(":target").getBoundingClientRect().top < innerHeight`)
	w.shown("#I2 li", "promised-window")
	w.click("td a[href*='/pushes/']")
	w.shown("h1", "Message for anna")

	w.visit("/console/proof?tz=utc")
	w.click("a", "Activity log")
	w.said("created a user")
	w.tabTo("#f-actor_type")
	w.do("choose who", chromedp.SetValue("#f-actor_type", "link"))
	w.click("button", "Filter")
	w.until(`location.search.includes("actor_type=link") && document.readyState === "complete"`)
	w.said("password has changed") // through the link; the tool created the user
	w.visit("/console/settings/keys?tz=utc")
	w.fill("#f-name", "back office")
	w.click("input[value='pushes:read']")
	w.click("button", "Create key")
	w.said("This is the new API key")
	secret := w.text("pre.secret")
	w.visit("/console/proof/log?tz=utc")
	w.said("started a campaign")
	w.never(secret)
	w.screen("proof-log")
	w.visit("/console/proof/log?tz=utc&actor_type=user")
	w.shown("td", "created an API key")
	w.never(secret)
	w.click("td a", "user admin@example.com")
	w.until(`location.search.includes("actor=") && document.readyState === "complete"`)
	w.shown("td", "created an API key")
	for format, want := range map[string]string{"CSV": "text/csv", "NDJSON": "application/x-ndjson"} {
		file := eval[string](w, fmt.Sprintf(`fetch(%s.href).then(async r => r.headers.get("Content-Type") + "\n" + await r.text())`, find("main a", format)))
		if !strings.HasPrefix(file, want) || strings.Count(file, "key.create") != 1 || strings.Contains(file, secret) {
			t.Errorf("%s: %s", format, file)
		}
	}
}
