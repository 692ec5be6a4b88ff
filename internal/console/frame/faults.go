package frame

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

// Faults lists errors of a form that are found before the API is called, by field name.
type Faults []client.Fault

func (f *Faults) Add(field string, err error) {
	if err != nil {
		*f = append(*f, client.Fault{Location: field, Message: err.Error()})
	}
}

// Problem returns the error that the API would return for the faults; nil if there are none.
func (f Faults) Problem() error {
	if len(f) == 0 {
		return nil
	}
	return &client.Invalid{
		Problem: client.Problem{Type: "urn:sendquota:problem:invalid-request", Title: "The form has errors", Status: http.StatusUnprocessableEntity, Detail: "Correct the marked fields."},
		Errors:  f,
	}
}

// Both adds the faults that the API found, so that the user sees all errors at once.
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

// FieldOf returns the field name of a location in an answer of the API: send_at for body.send_at.
func FieldOf(location string) string {
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		if name, ok := strings.CutPrefix(location, part); ok {
			return name
		}
	}
	return location
}

// AtField moves faults of an API member to the form field that the member was made of.
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

// ExplainStale replaces the error of a change that was refused because another user changed the resource first. It returns other errors as
// they are.
func ExplainStale(err error) error {
	if IsStale(err) {
		return Stale("Another user changed this after you opened the page. Nothing was saved, and your input is still here. Reload the page to see the latest version.")
	}
	return err
}

func IsStale(err error) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && (problem.Name() == "stale-version" || problem.Name() == "stale-policy")
}

func Stale(detail string) error {
	return &client.Problem{Type: "urn:sendquota:problem:stale-version", Title: "Changed in the meantime", Status: http.StatusPreconditionFailed, Detail: detail}
}
