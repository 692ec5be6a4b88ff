package frame

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
)

func (s *Site) NewPage(w http.ResponseWriter, r *http.Request, who Visitor) *Page {
	api, calls := s.callAPI(w, r, who)
	p := &Page{Visitor: who, Form: Form{Times: Times{Zones: readZones(r), Clock: s.cfg.Now}, Request: r}, site: s, Writer: w, API: api, Made: calls}
	p.flash = p.takeFlash()
	p.Notice = p.flash.Notice
	return p
}

// callAPI returns a client of the API of this program for a visitor, and the record of its calls.
func (s *Site) callAPI(w http.ResponseWriter, r *http.Request, who Visitor) (*client.Client, *inProcess) {
	calls := &inProcess{api: s.api, caller: who.Caller, w: w, page: r}
	api, err := client.New("http://api", "of-this-program", client.Config{HTTP: &http.Client{Transport: calls}, Retries: -1})
	if err != nil {
		panic(err) // the address and the key are valid
	}
	return api, calls
}

func (p *Page) Context() context.Context { return p.Request.Context() }

// Param returns a parameter of the path.
func (p *Page) Param(name string) string {
	v := chi.URLParam(p.Request, name)
	if p.Request.URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

// Show sends the page with a screen as its main part.
func (p *Page) Show(screen, title string, view any) error {
	return p.send(http.StatusOK, screen, title, view)
}

// ShowAgain shows a form again with its values and the reason why it was not accepted. It returns errors that are no answer of the API.
func (p *Page) ShowAgain(err error, screen, title string, view any) error {
	var problem *client.Problem
	if !errors.As(err, &problem) {
		return err
	}
	p.setProblem(problem, err)
	p.Again = true
	if problem.Name() == "idempotency-key-reused" { // the user went back to an accepted form and changed it
		p.Problem = &client.Problem{Title: "This form was already sent with other values", Status: problem.Status, RequestID: problem.RequestID,
			Detail: "The first version took effect. This one changed nothing: send it again to apply it as well."}
		p.Request.PostForm.Set("once", p.Once())
	}
	return p.send(problem.Status, screen, title, view)
}

func (p *Page) setProblem(problem *client.Problem, err error) {
	p.Problem, p.Faults, p.Place, p.Again = plainProblem(p, problem, err), nil, client.NoPlace{}, false
	var (
		invalid *client.Invalid
		full    *client.QuotaExceeded
		quiet   *client.QuietHours
	)
	switch {
	case errors.As(err, &invalid):
		p.Faults = byField(p, invalid.Errors)
	case errors.As(err, &full):
		p.Place = full.NoPlace
	case errors.As(err, &quiet):
		p.Place = quiet.NoPlace
	}
}

func (p *Page) send(status int, screen, title string, view any) error {
	p.lookForPauses()
	p.Title, p.Main, p.drawing = title, view, drawing{}
	main, err := p.draw(screen, "main")
	if err != nil {
		return err
	}
	p.placeFaults()
	p.Drawn = template.HTML(main)
	return p.execute(status, screen, "layout")
}

// Fragment sends a part of a screen that a script inserts into a page.
func (p *Page) Fragment(screen, part string, view any) error {
	p.Main = view
	return p.execute(http.StatusOK, screen, part)
}

// execute draws the page before it sends it, so that a template error does not leave half a page.
func (p *Page) execute(status int, screen, part string) error {
	text, err := p.draw(screen, part)
	if err != nil {
		return err
	}
	p.Sent = true
	p.Writer.Header().Set("Content-Type", "text/html; charset=utf-8")
	p.Writer.WriteHeader(status)
	_, _ = p.Writer.Write(text) // the browser may be gone
	return nil
}

// draw executes a part of a screen in the share of processors of the visitor's tenant: the month of a calendar takes tens of milliseconds.
func (p *Page) draw(screen, part string) (text []byte, err error) {
	if p.Visitor.Caller.Tenant == uuid.Nil { // no user has signed in, and these pages are short
		return p.site.screens.draw(screen, part, p)
	}
	err = p.site.cfg.Computing.Do(p.Context(), p.Visitor.Caller.Tenant, func() error {
		text, err = p.site.screens.draw(screen, part, p)
		return err
	})
	return text, err
}

var errPanic = errors.New("panic")

func asError(v any) error { return fmt.Errorf("%v", v) }

// Fail shows an error of the API as it is. The text of any other error is logged, not shown.
func (p *Page) Fail(err error) {
	if p.Sent {
		panic(http.ErrAbortHandler) // cut the connection, so that half an answer is not taken for a whole one
	}
	if none := noSuchThing(p, err); none != nil {
		err = none
	}
	var problem *client.Problem
	if !errors.As(err, &problem) {
		if p.Context().Err() == nil {
			p.site.cfg.Log.ErrorContext(p.Context(), "console page failed", "route", chi.RouteContext(p.Context()).RoutePattern(), "error", err)
		}
		problem = &client.Problem{Title: "Something went wrong", Status: http.StatusInternalServerError,
			Detail: "The page could not be shown. Open it again to see whether your change was saved."}
	}
	p.setProblem(problem, err)
	if err := p.send(cmp.Or(problem.Status, http.StatusInternalServerError), "error", cmp.Or(problem.Title, "Error"), nil); err != nil {
		p.site.cfg.Log.ErrorContext(p.Context(), "console error page failed", "error", err)
		http.Error(p.Writer, "Something went wrong.", http.StatusInternalServerError)
	}
}

func (p *Page) notFound() error {
	return &client.Problem{Title: "Page not found", Status: http.StatusNotFound, Detail: "There is no page at " + p.Request.URL.Path + ". Choose one from the menu."}
}

// Done redirects to a page that shows the notice once.
func (p *Page) Done(notice, to string) error {
	p.Notice = notice
	return p.Redirect(to)
}

// Redirect redirects to a page, which shows the calls made here.
func (p *Page) Redirect(to string) error {
	p.Sent = true
	p.setFlash()
	if p.Request.Header.Get("HX-Request") != "" {
		p.Writer.Header().Set("HX-Redirect", to)
		p.Writer.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(p.Writer, p.Request, to, http.StatusSeeOther)
	return nil
}

// setFlash passes the outcome and the calls to the next page, and what an earlier page passed on and no page has shown.
func (p *Page) setFlash() {
	c := p.flash
	c.Notice = p.Notice
	for _, call := range p.Made.calls() {
		if call.Method != http.MethodGet && call.Status < http.StatusBadRequest {
			if !call.Redacted && secret(call.Body) {
				call.Body = leftOut
			}
			c.Calls = append(c.Calls, call)
		}
	}
	if c.Notice == "" && len(c.Calls) == 0 {
		return
	}
	http.SetCookie(p.Writer, p.site.auth.Cookie(flashCookie, c.pack(), 60, http.SameSiteStrictMode))
}

// takeFlash reads and deletes what the previous page passed on, so that it is shown once.
func (p *Page) takeFlash() (c flash) {
	name := p.site.auth.Cookie(flashCookie, "", -1, http.SameSiteStrictMode)
	cookie, err := p.Request.Cookie(name.Name)
	if err != nil || p.Request.Method != http.MethodGet || p.Request.Header.Get("HX-Request") != "" {
		return c
	}
	http.SetCookie(p.Writer, name)
	packed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return c
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), longestUnpack))
	if err != nil || json.Unmarshal(text, &c) != nil {
		return flash{}
	}
	return c
}

// Calls returns the calls made for the page, as shell commands.
func (p *Page) Calls() []string { return p.curl(p.Made.calls()) }

// Did returns the calls of the form that led to the page. OmittedCalls returns the number of calls that are not shown.
func (p *Page) Did() []string     { return p.curl(p.flash.Calls) }
func (p *Page) OmittedCalls() int { return p.flash.More }

func (p *Page) curl(calls []Call) (lines []string) {
	address := p.site.cfg.APIAddress
	if address == "" {
		address = "http://" + p.Request.Host
		if p.Request.TLS != nil {
			address = "https://" + p.Request.Host
		}
	}
	for _, call := range calls {
		lines = append(lines, call.Curl(address))
	}
	return lines
}
