package frame

import (
	"errors"
	"net/http"

	"github.com/sendquota/sendquota/client"
)

// InBetween replaces the error of a change that was refused because another user changed the resource first. It returns other errors as
// they are.
func InBetween(err error) error {
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
