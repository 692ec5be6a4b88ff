package frame

import (
	"errors"
	"net/http"
	"net/url"
)

// serve returns the handler of a page for users who have a scope. The empty scope is for all users. longest is the maximum size of a form
// in bytes.
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

// signInFirst redirects a browser to sign-in, and from there back to its page. A script that requests a part of a page gets a header to
// redirect the whole page. After a form, the way back leads to the page of the form, from the Referer; the input is lost.
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

// Recover turns a panic into an error page if nothing was sent yet.
func (p *Page) Recover() {
	if v := recover(); v != nil {
		if v == http.ErrAbortHandler {
			panic(v)
		}
		p.Fail(errors.Join(errPanic, asError(v)))
	}
}
