package frame

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"
)

// Form is the form of a request, with the faults to show when the form is shown again.
type Form struct {
	Times

	Again     bool              // the form is shown again, after an error
	Faults    map[string]string // what is wrong with the form, by the name of the field
	AtFields  []shownFault      // faults that the page shows at their fields
	Elsewhere []shownFault      // the other faults
	drawing   drawing

	Request *http.Request
}

// shownFault is an entry of the error summary at the top of the page.
type shownFault struct {
	Name string // label of the field
	At   string // id of the field; empty if the page does not have the field
	Text string
}

// named is a field of the page: its id, and its label in the error summary.
type named struct{ id, words string }

// drawing collects the fields of the main template while it is executed.
type drawing struct {
	fields map[string]named // by the name of the fault
	faults []string         // names of shown faults, in page order
}

// Query returns a parameter of the URL without surrounding spaces.
func (f *Form) Query(name string) string { return strings.TrimSpace(f.Request.URL.Query().Get(name)) }

// Field returns a field of the posted form without surrounding spaces.
func (f *Form) Field(name string) string { return strings.TrimSpace(f.Request.PostForm.Get(name)) }

// Value returns the value to show in a field: from the posted form if there is one, else from the URL.
func (f *Form) Value(name string) string {
	if f.Request.PostForm != nil {
		return f.Request.PostForm.Get(name)
	}
	return f.Request.URL.Query().Get(name)
}

// Typed returns the posted value of a field, even if it is empty. It returns stored if the posted form does not have the field.
func (f *Form) Typed(name string, stored any) any {
	if f.Request.PostForm.Has(name) {
		return f.Request.PostForm.Get(name)
	}
	return stored
}

// Fault returns the error text of a field; empty if the field is valid.
func (f *Form) Fault(name string) string { return f.Faults[name] }

// Once returns a new Idempotency-Key for a form, so that a form takes effect once however often it is sent.
func (f *Form) Once() string { return rand.Text() }

// Kept returns the posted value of a field if the form is shown again, else the stored one.
func (f *Form) Kept(name string, stored any) any {
	if f.Request.PostForm != nil {
		return f.Request.PostForm.Get(name)
	}
	return stored
}

// ShownAt returns the update time that the form had when it was drawn; zero if the form does not have it.
//
//	<input type="hidden" name="updated_at" value="{{.Kept "updated_at" (.Machine .Main.UpdatedAt)}}">
func (f *Form) ShownAt() time.Time {
	at, _ := time.Parse(time.RFC3339Nano, f.Field("updated_at"))
	return at
}
