package frame

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

// Faults are what is wrong with a form before the API is asked: by the names of its fields.
type Faults []client.Fault

func (f *Faults) Add(field string, err error) {
	if err != nil {
		*f = append(*f, client.Fault{Location: field, Message: err.Error()})
	}
}

// Problem is the error that the API would have answered with; nil: nothing is wrong.
func (f Faults) Problem() error {
	if len(f) == 0 {
		return nil
	}
	return &client.Invalid{
		Problem: client.Problem{Type: "urn:sendquota:problem:invalid-request", Title: "The form has errors", Status: http.StatusUnprocessableEntity, Detail: "Correct the marked fields."},
		Errors:  f,
	}
}

// Both joins what was found here with what the API found: whoever fills in the form sees all of it at once.
func (f Faults) Both(err error) error {
	var invalid *client.Invalid
	if len(f) == 0 {
		return err
	}
	if errors.As(err, &invalid) {
		f = append(f, invalid.Errors...)
	}
	return f.Problem()
}

// byField are faults by the names of their fields. Of one field there may be several.
func byField(p *Page, all []client.Fault) map[string]string {
	texts := map[string]string{}
	for _, f := range all {
		name, text := FieldOf(f.Location), FaultWords(p, f)
		if before := texts[name]; before != "" {
			text = before + "; " + text
		}
		texts[name] = text
	}
	return texts
}

// FieldOf is the name of a field, of the place that the API names: body.send_at is send_at.
func FieldOf(location string) string {
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		if name, ok := strings.CutPrefix(location, part); ok {
			return name
		}
	}
	return location
}

// AtField has what the API finds wrong with a member stand at the field of the form that it was made of.
func AtField(err error, member, field string) error {
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		for i := range invalid.Errors {
			if FieldOf(invalid.Errors[i].Location) == member {
				invalid.Errors[i].Location = field
			}
		}
	}
	return err
}

func RFC3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
