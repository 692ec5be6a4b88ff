package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/testenv"
)

// do takes steps, which must end within stepTimeout.
func (w *window) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, stepTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// eval returns the value of an expression of JavaScript, or of the promise that it is.
func eval[T any](w *window, js string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, stepTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// visit shows the page at a path of the server, and wants a status of 2xx, or of the one given.
func (w *window) visit(path string, status ...int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, stepTimeout)
	defer cancel()
	answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(w.home+path))
	testenv.Check(w.t, err)
	if answer == nil {
		return // another place on the same page
	}
	if want := append(status, answer.Status); status == nil && answer.Status/100 != 2 || want[0] != answer.Status {
		w.t.Fatalf("%s: %d", path, answer.Status)
	}
}

// until waits until an expression of JavaScript is true. While a page gives way to the next, or is not read to its end, nothing is.
func (w *window) until(js string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, stepTimeout)
	defer cancel()
	var err error
	for {
		var holds bool
		if holds, err = chromedp.Run(ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && !!("+js+")")); holds {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("waited in vain: in the page: %s; %v\n%s", js, err, w.shownNow())
		case <-time.After(pollInterval):
		}
	}
}

// shownNow is the text of the page, for those who ask why a test failed.
func (w *window) shownNow() string {
	ctx, cancel := context.WithTimeout(w.ctx, stepTimeout)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText.slice(0, 2000)"))
	if err != nil {
		return err.Error()
	}
	return text
}

// find is an expression of JavaScript: the first visible element of a selector of CSS whose text has the part, if one is
// given.
func find(selector string, part ...string) string {
	return "[...document.querySelectorAll(" + strconv.Quote(selector) + ")].find(e => e.checkVisibility() && (e.innerText ?? e.textContent).includes(" + strconv.Quote(strings.Join(part, "")) + "))"
}

// shown waits until an element is visible, with a part of its text.
func (w *window) shown(selector string, part ...string) {
	w.t.Helper()
	w.until(find(selector, part...))
}

// said waits until the text of the page has a part.
func (w *window) said(part string) {
	w.t.Helper()
	w.until("document.body?.innerText.includes(" + strconv.Quote(part) + ")")
}

// text is the text of an element, once it is visible.
func (w *window) text(selector string) string {
	w.t.Helper()
	w.shown(selector)
	return eval[string](w, find(selector)+".innerText")
}

// click clicks an element in its middle, once it is visible; with a part of its text, such as "button", "Save".
func (w *window) click(selector string, part ...string) {
	w.t.Helper()
	w.shown(selector, part...)
	var at *struct{ X, Y float64 }
	testenv.Until(w.t, pollInterval, selector+" stands still, and nothing covers it", func() bool {
		at = eval[*struct{ X, Y float64 }](w, `(async () => {
			const middle = () => {
				const e = `+find(selector, part...)+`
				if (!e) return null
				e.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"})
				const r = e.getBoundingClientRect(), at = {x: r.x + r.width / 2, y: r.y + r.height / 2}
				const top = document.elementFromPoint(at.x, at.y)
				return top && (e.contains(top) || top.control === e) ? at : null
			}
			const before = middle()
			await new Promise(done => setTimeout(done, 50))
			const after = middle()
			return before && after && before.x === after.x && before.y === after.y ? after : null
		})()`)
		return at != nil
	})
	w.do("click "+selector, chromedp.MouseClickXY(at.X, at.Y))
}

// fill types a text into a field in place of what it has.
func (w *window) fill(selector, text string) {
	w.t.Helper()
	w.click(selector)
	eval[*bool](w, "(e => { e.select && e.select() })("+find(selector)+")")
	w.press(text)
}

// set gives a field a value in place of typing it: how a time is typed, say, is a matter of the browser's language.
func (w *window) set(selector, value string) {
	w.t.Helper()
	w.shown(selector)
	eval[string](w, find(selector)+".value = "+strconv.Quote(value))
}

// point is a place in the window.
type point struct{ X, Y float64 }

// middle is the middle of an element, once it is shown in the middle of the window.
func (w *window) middle(selector string) point {
	w.t.Helper()
	w.shown(selector)
	return eval[point](w, `(() => {
		const e = `+find(selector)+`
		e.scrollIntoView({block: "center", behavior: "instant"})
		const r = e.getBoundingClientRect()
		return {X: r.x + r.width / 2, Y: r.y + r.height / 2}
	})()`)
}

// mouse does something with the left button of the mouse: "mousePressed", "mouseMoved" or "mouseReleased".
func (w *window) mouse(kind input.DispatchMouseEventType, at point) {
	w.t.Helper()
	_, err := chromedp.Call(w.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at.X, Y: at.Y, Button: "left", Buttons: 1, ClickCount: 1})
	testenv.Check(w.t, err)
}

// press presses keys, one after the other: characters, or keys of package kb, such as kb.ArrowLeft.
func (w *window) press(keys ...string) {
	w.t.Helper()
	w.do(fmt.Sprintf("press %q", keys), chromedp.KeyEvent(strings.Join(keys, "")))
}

// tabTo presses the tabulator until an element has the focus, as those do who have no mouse. The focus must be seen.
func (w *window) tabTo(selector string) {
	w.t.Helper()
	for range 300 {
		w.press(kb.Tab)
		if eval[bool](w, "!!document.activeElement && document.activeElement.matches("+strconv.Quote(selector)+")") {
			if !eval[bool](w, `document.activeElement.matches(":focus-visible") && document.activeElement.checkVisibility()`) {
				w.t.Errorf("%s has a focus that is not seen", selector)
			}
			return
		}
	}
	w.t.Fatalf("no number of tabs leads to %s; the focus is on %s", selector, eval[string](w, "document.activeElement.outerHTML.slice(0, 200)"))
}

// field returns the value of a field of a form.
func (w *window) field(selector string) string {
	w.t.Helper()
	w.shown(selector)
	return eval[string](w, find(selector)+".value")
}

// keeps checks that fields keep their input after a form was rejected.
func (w *window) keeps(fields map[string]string) {
	w.t.Helper()
	for field, want := range fields {
		if got := w.field(field); got != want {
			w.t.Errorf("%s has %q, want %q", field, got, want)
		}
	}
}
