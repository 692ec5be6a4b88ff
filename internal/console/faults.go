package console

import (
	"errors"
	"net/http"
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
		Problem: client.Problem{Type: "urn:sendquota:problem:invalid-request", Title: "The form has faults", Status: http.StatusUnprocessableEntity, Detail: "Mend what is marked."},
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

// atField puts what is wrong with a field of the API to the field of the form that has another name.
func atField(err error, api, form string) error {
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		for i := range invalid.Errors {
			if fieldOf(invalid.Errors[i].Location) == api {
				invalid.Errors[i].Location = form
			}
		}
	}
	return err
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
