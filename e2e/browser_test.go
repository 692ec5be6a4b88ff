package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// stepTimeout bounds each step in a browser: other tests keep the processors busy.
const stepTimeout = 2 * time.Minute

// chromium is the one browser of this test binary, started when it is first asked for. Tests have windows of their own in
// it, which share nothing.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := devstack.Chromium(context.Background(), devstack.Config{Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), // and if a page asks, it gets nothing
		chromedp.Flag("hide-scrollbars", true),
		chromedp.WindowSize(1280, 800),
	)
	ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx)
	stopChromium = func() error { return chromedp.Cancel(ctx) }
	return ctx, chromedp.Do(ctx)
})

// stopChromium ends the browser that was started.
var stopChromium = func() error { return nil }

// window is a browser's window of one test: with cookies of its own, and nothing cached. At the end of the test it
// reports what went wrong in the pages that it showed: violations of their policies of contents, errors in the console,
// and requests to others than their own server.
type window struct {
	t    testenv.T
	ctx  context.Context
	home string // such as http://127.0.0.1:8080

	mu                 sync.Mutex
	violations, errors []string
	requests           []string // all URLs
	expected           []string // parts of errors that the test provokes
	others             []string // that may be asked too, such as http://127.0.0.1:9090
}

// openWindow opens a window for a server.
func openWindow(t testenv.T, home string) *window {
	t.Helper()
	shared, err := chromium()
	testenv.Check(t, err)
	ctx, _ := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	w := &window{t: t, ctx: ctx, home: home}
	t.Cleanup(w.close)
	testenv.Check(t, chromedp.Listen(ctx, w.note))
	_, err = chromedp.Call(ctx, runtime.AddBinding, runtime.AddBindingParams{Name: "noteViolation"})
	testenv.Check(t, err)
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		addEventListener("securitypolicyviolation", e => noteViolation(
			[e.effectiveDirective, e.blockedURI, e.sourceFile, e.lineNumber + ":" + e.columnNumber, e.sample, e.target && e.target.outerHTML ? e.target.outerHTML.slice(0, 200) : ""].join(" ")))`})
	testenv.Check(t, err)
	return w
}

// note takes down what happens, while it happens.
func (w *window) note(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventBindingCalled:
		w.violations = append(w.violations, e.Payload)
	case *runtime.EventExceptionThrown:
		w.errors = append(w.errors, "uncaught: "+e.ExceptionDetails.Text+" "+describe(e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			var words []string
			for _, a := range e.Args {
				words = append(words, describe(a))
			}
			w.errors = append(w.errors, "console."+string(e.Type)+": "+strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Source == "security" {
			w.errors = append(w.errors, fmt.Sprint("log: ", e.Entry.Text, " ", e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		w.requests = append(w.requests, e.URL)
	}
}

// describe is a value of the console in words.
func describe(o *runtime.RemoteObject) string {
	if o == nil {
		return ""
	}
	return strings.TrimSpace(string(o.Value) + " " + o.Description)
}

// expect takes errors whose text has this part for what the test means to happen, such as an answer of 403.
func (w *window) expect(part string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected = append(w.expected, part)
}

// allow takes requests to another server for what the test means to happen.
func (w *window) allow(home string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = append(w.others, home)
}

// close reports what went wrong, and closes the window.
func (w *window) close() {
	w.t.Helper()
	// Events come in order: once this is answered, all that happened before is noted.
	ctx, cancel := context.WithTimeout(w.ctx, stepTimeout)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[int]("1")); err != nil {
		w.t.Errorf("the window answers no more: %v", err)
	}
	w.mu.Lock()
	for _, v := range w.violations {
		w.t.Errorf("against the policy of contents: %s", v)
	}
	for _, e := range w.errors {
		if !slices.ContainsFunc(w.expected, func(part string) bool { return strings.Contains(e, part) }) {
			w.t.Errorf("in the console: %s", e)
		}
	}
	for _, r := range w.requests {
		if u, err := url.Parse(r); err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" && u.Scheme+"://"+u.Host != w.home && !slices.Contains(w.others, u.Scheme+"://"+u.Host) {
			w.t.Errorf("a request to others: %s", r)
		}
	}
	w.mu.Unlock()
	if err := chromedp.Cancel(w.ctx); err != nil {
		w.t.Errorf("close the window: %v", err)
	}
}
