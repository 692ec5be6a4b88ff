package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// highest returns the top of a colour in a picture, as a part of its height from above; 2: the colour is missing.
func highest(picture int, color string) string {
	return fmt.Sprintf(`(() => {
		const canvas = document.querySelectorAll(".plot canvas")[%d], brush = document.createElement("canvas").getContext("2d")
		brush.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("%s").trim()
		brush.fillRect(0, 0, 1, 1)
		const want = brush.getImageData(0, 0, 1, 1).data
		const has = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
		for (let i = 0; i < has.length; i += 4) {
			if (has[i + 3] > 100 && [0, 1, 2].every((c) => Math.abs(has[i + c] - want[c]) < 40)) return Math.floor(i / 4 / canvas.width) / canvas.height
		}
		return 2
	})()`, picture, color)
}

// TestConsole_Now watches the current state while pushes are sent and refused: the numbers and the lines follow, and
// the page is never reloaded.
func TestConsole_Now(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("viewer")
	w.visit("/console/now?tz=utc")
	w.said("Nothing is sent right now: no worker has reported")
	w.said("No attempts in the last hour")
	eval[int](w, "window.loadedOnce = 1")

	submit := func(n int, message object) {
		t.Helper()
		status, answer := b.call("POST", "/v1/pushes", object{"recipient": fmt.Sprint("user-", n), "channel": "push", "message": message})
		if status != 201 {
			t.Fatal(status, answer)
		}
	}
	for n := range 5 {
		submit(n, object{"title": "Hi"})
	}
	const waiting, attempts = `document.querySelector("section[aria-labelledby=n-waiting] .figure")?.innerText`, `section[aria-labelledby=n-attempts] dd`
	w.until(waiting + ` === "5"`)
	w.said("messages queued. The oldest was due at")
	w.said("UTC")
	lines := func(name string) int {
		t.Helper()
		return eval[int](w, `JSON.parse(document.querySelector("#series").dataset.series).`+name+`.reduce((a, b) => a + b, 0)`)
	}
	if n := lines("delivered"); n != 0 {
		t.Errorf("the lines show %d that were delivered", n)
	}

	if high := eval[float64](w, highest(0, "--good")); high < 0.6 {
		t.Errorf("the line of those delivered is at %v of the height from above, and none is", high)
	}

	b.Start("worker")
	submit(5, object{"do": "400"})
	delivered := func(n int) string {
		return fmt.Sprintf(`document.querySelectorAll(%q)[0]?.innerText === "%d"`, attempts, n)
	}
	w.until(delivered(5))
	w.until(`document.querySelectorAll("` + attempts + `")[1]?.innerText === "1"`)
	w.until(waiting + ` === "0"`)
	w.said("All systems normal")
	w.said("1 running")
	w.said("is the typical delay")
	w.shown("td", "working")
	once(t, b.provider.Arrivals(), 6)
	if delivered, refused := lines("delivered"), lines("refused"); delivered != 5 || refused != 1 {
		t.Errorf("the lines show %d delivered, %d refused", delivered, refused)
	}
	w.until(`document.querySelectorAll("#live table")[1]?.rows.length > 1`) // the table has what the lines show

	// The lines are there for those who see them, and lead those who do not to the table.
	if n := eval[int](w, `[...document.querySelectorAll(".plot[role=img]")].filter(e => e.checkVisibility() && e.getAttribute("aria-label").includes("The table below lists the numbers")
		&& e.querySelector("canvas")?.width > 300 && e.closest("figure").querySelector("figcaption").innerText).length`); n != 2 {
		t.Errorf("%d pictures are drawn, with a text for those who do not see them", n)
	}
	w.until(highest(0, "--good") + " < 0.4") // five at once are as high as the picture; none is at its foot
	w.until(highest(1, "--odd") + " < 0.4")  // the only minute with a delivery has no line, but a point
	w.shown("figcaption", "UTC")

	w.screen("now")
	w.until(`document.querySelector(".plot canvas").width > 300`) // after the narrow screen it is wide again

	// With the keyboard alone: the tables scroll, and stay where they are when new numbers come.
	w.tabTo("[aria-label=Channels]")
	w.tabTo("[aria-label='Minute by minute']")
	eval[bool](w, "(document.activeElement.mark = true)")
	submit(6, object{"title": "Hi"})
	w.until(delivered(6))
	if !eval[bool](w, "document.activeElement.mark === true") {
		t.Errorf("the focus went to %s", eval[string](w, "document.activeElement.outerHTML.slice(0, 200)"))
	}
	if eval[int](w, "window.loadedOnce ?? 0") != 1 {
		t.Error("the page was reloaded")
	}
	w.tabTo("summary:not(.menu *)")
	w.press(kb.Enter)
	w.shown("pre", "/v1/status")
	w.shown("pre", "/v1/channels")
}
