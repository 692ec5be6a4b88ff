package frame

import (
	"errors"
	"net/http"
	"net/url"
)

// Handler serves one page. An error of the API becomes a page that shows it.
type Handler func(p *Page) error

// serve returns the handler of a page, for users who have a scope; an empty scope is for all of them. A form has so many bytes at most.
func (s *Site) serve(scope string, longest int64, h Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := s.auth.SignedIn(r)
		if !ok {
			signInFirst(w, r)
			return
		}
		p := s.NewPage(w, r, who)
		defer p.Recover()
		if scope != "" && !p.May(scope) {
			p.Fail(notForRole(scope))
			return
		}
		done, err := p.takeForm(longest)
		if err != nil {
			p.Fail(err)
			return
		}
		defer done()
		if err := h(p); err != nil {
			p.Fail(err)
		}
	}
}

// signInFirst sends a browser to sign in, and from there back to where it wanted to go. A part of a page, which a script asks
// for, has the script go there. After a form, it is back to the page of the form, as the browser tells it: what was typed is lost.
func signInFirst(w http.ResponseWriter, r *http.Request) {
	to := SignInPath
	if r.Method == http.MethodPost {
		to += "?lost=yes"
		if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
			to += "&to=" + url.QueryEscape(from.RequestURI())
		}
	}
	if r.Method == http.MethodGet && r.Header.Get("HX-Request") == "" {
		to += "?to=" + url.QueryEscape(r.URL.RequestURI())
	}
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// Recover turns a panic into an error page, if nothing was sent yet.
func (p *Page) Recover() {
	if v := recover(); v != nil {
		if v == http.ErrAbortHandler {
			panic(v)
		}
		p.Fail(errors.Join(errPanic, asError(v)))
	}
}
