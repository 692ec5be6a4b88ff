package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sendquota/sendquota/internal/testenv"
)

var update = flag.Bool("update", false, "write the pictures of docs/console")

// pollInterval is the interval between checks of a condition in a window.
const pollInterval = 20 * time.Millisecond

// screen makes the checks that every screen must pass, in light and in dark, wide and narrow, and takes its picture, in
// light and wide, as it leaves the window. In a short run it does nothing.
func (w *window) screen(name string) {
	w.t.Helper()
	if testing.Short() {
		return
	}
	for _, scheme := range []string{"dark", "light"} {
		w.scheme(scheme)
		w.axe()
	}
	w.narrow()
	w.screenshot(name)
}

// scheme makes the window prefer light or dark.
func (w *window) scheme(scheme string) {
	w.t.Helper()
	_, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		// Without movement: what fades in has another contrast while it does.
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	testenv.Check(w.t, err)
}

// narrow wants that on a screen of 320 pixels nothing of the page lies beyond its side, and that it is still accessible.
func (w *window) narrow() {
	w.t.Helper()
	w.size(320, 640)
	if over := eval[int](w, "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth"); over > 0 {
		w.t.Errorf("at 320 pixels the page is %d too wide; beyond the side are:\n%s", over, strings.Join(eval[[]string](w, `
			[...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
				.slice(0, 10).map(e => e.cloneNode(false).outerHTML.slice(0, 200))`), "\n"))
	}
	w.axe()
	w.size(1280, 800)
}

// size makes the window so wide and high.
func (w *window) size(width, height int64) {
	w.t.Helper()
	w.do("make it another size", chromedp.EmulateViewport(width, height))
}

// axeSource is axe-core, as published.
var axeSource = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("testdata/vendor/axe.min.js") })

// finding is a complaint of axe-core about a page.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// axe wants that axe-core finds nothing against the page as it is shown now. It is run by the browser's tools, which no
// policy of contents holds up.
func (w *window) axe() {
	w.t.Helper()
	for _, f := range w.axeFindings() {
		w.t.Errorf("axe: %s (%s): %s", f.ID, f.Impact, f.Help)
		for _, n := range f.Nodes[:min(len(f.Nodes), 5)] {
			w.t.Logf("  %s\n    %s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    "))
		}
	}
}

func (w *window) axeFindings() []finding {
	w.t.Helper()
	if eval[bool](w, "typeof axe === 'undefined'") {
		source, err := axeSource()
		testenv.Check(w.t, err)
		eval[chromedp.Void](w, string(source))
	}
	return eval[[]finding](w, "axe.run(document, {resultTypes: ['violations'], preload: false}).then(r => r.violations)")
}

// picture takes the picture of a page whose point lies below the window: as a window would show it that is so high.
func (w *window) picture(name string, height int64) {
	w.t.Helper()
	if !*update {
		return
	}
	w.size(1280, height)
	w.screenshot(name)
	w.size(1280, 800)
}

// screenshot writes docs/console/<name>.png, if -update is given. What has no name gets no picture.
func (w *window) screenshot(name string) {
	w.t.Helper()
	if !*update || name == "" {
		return
	}
	picture, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	testenv.Check(w.t, err)
	folder := filepath.Join("..", "docs", "console")
	testenv.Check(w.t, os.MkdirAll(folder, 0o755))
	testenv.Check(w.t, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644))
}
