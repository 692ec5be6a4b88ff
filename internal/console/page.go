package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/sendquota/sendquota/client"
)

// page is one request for a page, and what the templates see of it: they are executed with a page, whose Main is the view of the
// screen.
type page struct {
	Title string
	Visitor
	form
	Main    any
	Notice  string          // of what was done just now
	Problem *client.Problem // why the form, which is shown again, was not accepted
	Place   client.NoPlace  // of a push that has none at its time: where there is one instead

	Drawn template.HTML // the main part

	site  *site
	w     http.ResponseWriter
	api   *client.Client
	calls *inProcess
	sent  bool

	carried carried // of the page before
}

func (s *site) NewPage(w http.ResponseWriter, r *http.Request, who Visitor) *page {
	calls := &inProcess{api: s.api, caller: who.Caller, w: w, page: r}
	api, err := client.New("http://api", "of-this-program", client.Config{HTTP: &http.Client{Transport: calls}, Retries: -1})
	if err != nil {
		panic(err) // the address and the key are good
	}
	p := &page{Visitor: who, form: form{times: times{Zones: readZones(r), now: s.cfg.Now}, r: r}, site: s, w: w, api: api, calls: calls}
	p.carried = p.takeCarried()
	p.Notice = p.carried.Notice
	return p
}

func (p *page) ctx() context.Context { return p.r.Context() }

// param reads a part of the path.
func (p *page) param(name string) string {
	v := chi.URLParam(p.r, name)
	if p.r.URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

// show sends the page with the main part of a screen.
func (p *page) show(screen, title string, view any) error {
	return p.send(http.StatusOK, screen, title, view)
}

// again shows a form once more, with what was typed and why it was not accepted. What is no answer of the API is returned.
func (p *page) again(err error, screen, title string, view any) error {
	var problem *client.Problem
	if !errors.As(err, &problem) {
		return err
	}
	p.setProblem(problem, err)
	p.Again = true
	if problem.Name() == "idempotency-key-reused" { // somebody went back to a form that was accepted, and changed it
		p.Problem = &client.Problem{Title: "This form was already sent with other values", Status: problem.Status, RequestID: problem.RequestID,
			Detail: "The first version took effect. This one changed nothing: send it again to apply it as well."}
		p.r.PostForm.Set("once", p.Once())
	}
	return p.send(problem.Status, screen, title, view)
}

func (p *page) setProblem(problem *client.Problem, err error) {
	p.Problem, p.Faults, p.Place, p.Again = saidProblem(p, problem, err), nil, client.NoPlace{}, false
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

func (p *page) send(status int, screen, title string, view any) error {
	p.Title, p.Main, p.drawing = title, view, drawing{}
	main, err := p.draw(screen, "main")
	if err != nil {
		return err
	}
	p.placeFaults()
	p.Drawn = template.HTML(main)
	return p.execute(status, screen, "layout")
}

// fragment sends a part of a screen, which a script puts into a page.
func (p *page) fragment(screen, part string, view any) error {
	p.Main = view
	return p.execute(http.StatusOK, screen, part)
}

// execute draws before it sends: an error of a template leaves no half page.
func (p *page) execute(status int, screen, part string) error {
	text, err := p.draw(screen, part)
	if err != nil {
		return err
	}
	p.sent = true
	p.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	p.w.WriteHeader(status)
	_, _ = p.w.Write(text) // a browser that went away needs no page
	return nil
}

var errPanic = errors.New("panic")

func asError(v any) error { return fmt.Errorf("%v", v) }

// fail shows an error of the API as it stands, and of any other error only that there was one.
func (p *page) fail(err error) {
	if p.sent {
		panic(http.ErrAbortHandler) // half of an answer must not be taken for a whole one
	}
	if none := noSuchThing(p, err); none != nil {
		err = none
	}
	var problem *client.Problem
	if !errors.As(err, &problem) {
		if p.ctx().Err() == nil {
			p.site.cfg.Log.ErrorContext(p.ctx(), "console page failed", "route", chi.RouteContext(p.ctx()).RoutePattern(), "error", err)
		}
		problem = &client.Problem{Title: "Something went wrong", Status: http.StatusInternalServerError,
			Detail: "The page could not be shown. Open it again to see whether your change was saved."}
	}
	p.setProblem(problem, err)
	if err := p.send(cmp.Or(problem.Status, http.StatusInternalServerError), "error", cmp.Or(problem.Title, "Error"), nil); err != nil {
		p.site.cfg.Log.ErrorContext(p.ctx(), "console error page failed", "error", err)
		http.Error(p.w, "Something went wrong.", http.StatusInternalServerError)
	}
}

func (p *page) notFound() error {
	return &client.Problem{Title: "Page not found", Status: http.StatusNotFound, Detail: "There is no page at " + p.r.URL.Path + ". Choose one from the menu."}
}

// done goes to a page, which says once what was done.
func (p *page) done(notice, to string) error {
	p.Notice = notice
	return p.redirect(to)
}

// redirect goes to a page, which shows the calls that were made here.
func (p *page) redirect(to string) error {
	p.sent = true
	p.carry()
	if p.r.Header.Get("HX-Request") != "" {
		p.w.Header().Set("HX-Redirect", to)
		p.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(p.w, p.r, to, http.StatusSeeOther)
	return nil
}

// Calls are those that were made for the page, as lines for a shell.
func (p *page) Calls() []string { return p.curl(p.calls.calls()) }

// Did are the calls of the form that led to the page, and OmittedCalls is how many of them are not shown.
func (p *page) Did() []string     { return p.curl(p.carried.Calls) }
func (p *page) OmittedCalls() int { return p.carried.More }

func (p *page) curl(calls []Call) (lines []string) {
	address := p.site.cfg.APIAddress
	if address == "" {
		address = "http://" + p.r.Host
		if p.r.TLS != nil {
			address = "https://" + p.r.Host
		}
	}
	for _, call := range calls {
		lines = append(lines, call.Curl(address))
	}
	return lines
}
