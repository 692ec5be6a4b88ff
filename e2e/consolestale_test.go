package e2e

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_NotLive has a page that follows by itself lose what it follows, in every way that there is: it says so, its last numbers
// stay, and it takes that back when it goes on.
func TestConsole_NotLive(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	api := b.StartAPI()
	const waiting, lost, quiet = `document.querySelector("section[aria-labelledby=n-waiting] .figure")?.innerText`, "No longer live: the connection is lost. Reload the page.",
		`document.querySelector(".stale[role=status]")?.innerText === ""`
	pushes := 0
	submit := func() string {
		t.Helper()
		pushes++
		status, answer := b.call("POST", "/v1/pushes", object{"recipient": fmt.Sprint("user-", pushes), "channel": "push", "message": object{"title": "Hi"}})
		if status != 201 {
			t.Fatal(status, answer)
		}
		return fmt.Sprintf(`%s === "%d"`, waiting, pushes)
	}

	// Too many pages are followed already.
	shown := submit()
	var all sync.WaitGroup
	others := b.session("admin")
	for range 50 {
		b.follow(others, &all)
	}
	w := b.signIn("viewer")
	w.expect("429")
	w.visit("/console/now")
	w.said("No longer live: too many live pages are open, close some. Reload the page.")
	w.until(shown)
	w.screen("")

	// The server stops, and comes back.
	b.stop(api)
	all.Wait()
	api = b.StartAPI()
	w.expect("htmx:sse:error")
	w.expect("ERR_")
	w.visit("/console/now")
	w.until(submit())
	w.until(quiet)
	eval[int](w, "window.loadedOnce = 1")
	b.stop(api)
	w.said(lost)
	w.until(fmt.Sprintf(`%s === "%d"`, waiting, pushes))
	api = b.StartAPI()
	w.until(quiet)
	w.until(submit())

	// Nothing comes over a connection that is still there.
	testenv.Check(t, api.Freeze())
	w.said("No longer live: no update from the server for a while. Reload the page.")
	testenv.Check(t, api.Thaw())
	w.until(quiet)
	w.until(submit())
	if eval[int](w, "window.loadedOnce ?? 0") != 1 {
		t.Error("the page was reloaded")
	}

	// The user is signed out meanwhile.
	b.stop(api)
	w.said(lost)
	b.sql(`DELETE FROM sessions`)
	b.StartAPI()
	w.expect("401")
	w.said("No longer live: you are signed out. Reload the page.")
	w.until(fmt.Sprintf(`%s === "%d"`, waiting, pushes))
	w.visit("/console/now")
	w.shown("#f-password")
}
