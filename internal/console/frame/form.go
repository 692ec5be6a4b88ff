package frame

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"
)

// Form is the form of a request, and what the page says about it when it is shown again.
type Form struct {
	Times

	Again     bool              // the form is shown again, after an error
	Faults    map[string]string // what is wrong with the form, by the name of the field
	AtFields  []shownFault      // faults that the page shows at their fields
	Elsewhere []shownFault      // the other faults
	drawing   drawing

	Request *http.Request
}

// query is a parameter of the URL without spaces around it.
func (f *Form) Query(name string) string { return strings.TrimSpace(f.Request.URL.Query().Get(name)) }

// form is a field of the form without spaces around it.
func (f *Form) Field(name string) string { return strings.TrimSpace(f.Request.PostForm.Get(name)) }

// Value is what a field of a form was filled with: by a form that is shown again, else by the URL.
func (f *Form) Value(name string) string {
	if f.Request.PostForm != nil {
		return f.Request.PostForm.Get(name)
	}
	return f.Request.URL.Query().Get(name)
}

// Typed is what a field was filled with, even with nothing; what is stored, if the form that was sent does not have it.
func (f *Form) Typed(name string, stored any) any {
	if f.Request.PostForm.Has(name) {
		return f.Request.PostForm.Get(name)
	}
	return stored
}

// Fault is what is wrong with a field of the form; empty: nothing.
func (f *Form) Fault(name string) string { return f.Faults[name] }

// Once is a new Idempotency-Key for a form: however often it is sent, what it does is done once.
func (f *Form) Once() string { return rand.Text() }

// Kept is the value of a field: what was typed, if the form is shown again, else what is stored.
func (f *Form) Kept(name string, stored any) any {
	if f.Request.PostForm != nil {
		return f.Request.PostForm.Get(name)
	}
	return stored
}

// shownAt is when what a form changes was last changed, as the form was filled; zero: the form does not say.
//
//	<input type="hidden" name="updated_at" value="{{.Kept "updated_at" (.Machine .Main.UpdatedAt)}}">
func (f *Form) ShownAt() time.Time {
	at, _ := time.Parse(time.RFC3339Nano, f.Field("updated_at"))
	return at
}
