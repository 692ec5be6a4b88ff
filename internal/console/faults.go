package console

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

// faults are what is wrong with a form before the API is asked: by the names of its fields.
type faults []client.Fault

func (f *faults) add(field string, err error) {
	if err != nil {
		*f = append(*f, client.Fault{Location: field, Message: err.Error()})
	}
}

// problem is the error that the API would have answered with; nil: nothing is wrong.
func (f faults) problem() error {
	if len(f) == 0 {
		return nil
	}
	return &client.Invalid{
		Problem: client.Problem{Type: "urn:sendquota:problem:invalid-request", Title: "The form has errors", Status: http.StatusUnprocessableEntity, Detail: "Correct the marked fields."},
		Errors:  f,
	}
}

// both joins what was found here with what the API found: whoever fills in the form sees all of it at once.
func (f faults) both(err error) error {
	var invalid *client.Invalid
	if len(f) == 0 {
		return err
	}
	if errors.As(err, &invalid) {
		f = append(f, invalid.Errors...)
	}
	return f.problem()
}

// byField are faults by the names of their fields. Of one field there may be several.
func byField(p *page, all []client.Fault) map[string]string {
	texts := map[string]string{}
	for _, f := range all {
		name, text := fieldOf(f.Location), saidFault(p, f)
		if before := texts[name]; before != "" {
			text = before + "; " + text
		}
		texts[name] = text
	}
	return texts
}

// fieldOf is the name of a field, of the place that the API names: body.send_at is send_at.
func fieldOf(location string) string {
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		if name, ok := strings.CutPrefix(location, part); ok {
			return name
		}
	}
	return location
}

// atField has what the API finds wrong with a member stand at the field of the form that it was made of.
func atField(err error, member, field string) error {
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		for i := range invalid.Errors {
			if fieldOf(invalid.Errors[i].Location) == member {
				invalid.Errors[i].Location = field
			}
		}
	}
	return err
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
