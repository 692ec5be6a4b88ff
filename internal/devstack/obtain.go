package devstack

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// service is one of the two things that can be found or started. Both go
// through obtain, so that they behave alike.
type service struct {
	name     string // "Postgres"
	variable string // the environment variable with its URL
	program  string // the name of the server's binary, for messages
	apt      string // Debian package
	brew     string // Homebrew formula

	binary func() (string, error)                               // finds the local binary
	recipe func(ctx context.Context, f *folder) (recipe, error) // says how to start it
	shared func(ctx context.Context) (*Server, error)           // borrows from the standard port
	inside func() (*Server, error)                              // nil, or a stand-in within this process
}

// obtain walks through the ways 2 to 6 of the package comment.
func (c Config) obtain(ctx context.Context, s service) (*Server, error) {
	var reasons []error
	_, missing := s.binary()
	if missing == nil {
		server, err := c.private(ctx, s)
		if err == nil || c.final(ctx) {
			return server, err
		}
		reasons = append(reasons, err)
	} else {
		reasons = append(reasons, missing)
	}
	if !c.OwnProcess {
		server, err := s.shared(ctx)
		if err == nil {
			return server, nil
		}
		reasons = append(reasons, err)
	}
	if missing != nil {
		err := c.install(ctx, s)
		if err == nil {
			return c.private(ctx, s)
		}
		reasons = append(reasons, err)
	}
	if s.inside != nil && c.AllowMiniredis && !c.OwnProcess {
		return s.inside()
	}
	return nil, notFound(s, reasons)
}

// final tells whether a local binary that fails to start ends the search. It
// does for kept data: another server would look as if the data were lost.
func (c Config) final(ctx context.Context) bool {
	return c.Dir != "" || c.OwnProcess || ctx.Err() != nil
}

// notFound is the error that a newcomer reads on a machine without servers.
func notFound(s service, reasons []error) error {
	var tried strings.Builder
	for _, r := range reasons {
		fmt.Fprintf(&tried, "\n  - %s", strings.ReplaceAll(r.Error(), "\n", "\n    "))
	}
	return &notFoundError{
		text: fmt.Sprintf("no %s: %s is not set, and%s\n"+
			"install %s (Debian: apt-get install %s), or run `docker compose up -d postgres redis` and set\n"+
			"DATABASE_URL=postgres://sendquota:sendquota@127.0.0.1:5432/sendquota REDIS_URL=redis://127.0.0.1:6379/0",
			s.name, s.variable, tried.String(), s.program, s.apt),
		reasons: errors.Join(reasons...),
	}
}

type notFoundError struct {
	text    string
	reasons error
}

func (e *notFoundError) Error() string { return e.text }
func (e *notFoundError) Unwrap() error { return e.reasons }
