package devstack

import (
	"context"
	"fmt"
	"strings"
)

// service is one of the two things that can be found or started. Both go
// through obtain, so that they behave alike.
type service struct {
	name     string // "Postgres"
	variable string // the environment variable that names its program; empty: the caller may name a server
	program  string // the name of the server's binary, for messages
	apt      string // Debian package
	brew     string // Homebrew formula

	binary func() (string, error)                               // finds the local binary
	recipe func(ctx context.Context, f *folder) (recipe, error) // returns how to start it
	inside func() (*Server, error)                              // nil, or a stand-in within this process
}

// obtain walks through the ways 2 to 5 of the package comment.
func (c Config) obtain(ctx context.Context, s service) (*Server, error) {
	_, missing := s.binary()
	tried := attempts{missing}
	if missing == nil {
		server, err := c.private(ctx, s)
		// No other server takes the place of one with kept data: the data would seem lost.
		if err == nil || c.Dir != "" || c.OwnProcess || ctx.Err() != nil {
			return server, err
		}
		tried[0] = err
	}
	if missing != nil {
		err := c.install(ctx, s)
		if err == nil {
			return c.private(ctx, s)
		}
		tried = append(tried, err)
	}
	if s.inside != nil && c.AllowMiniredis && !c.OwnProcess {
		return s.inside()
	}
	return nil, notFound(s, tried)
}

// notFound is the error that a newcomer reads on a machine without servers.
func notFound(s service, tried attempts) error {
	if s.variable != "" {
		return fmt.Errorf("no %s: %s is not set, and%w\ninstall %s (Debian: apt-get install %s)", s.name, s.variable, tried, s.program, s.apt)
	}
	return fmt.Errorf("no %s: none was named, and%w\n"+
		"install %s (Debian: apt-get install %s), or name servers that run elsewhere:\n"+
		"sendquota dev --database-url postgres://USER:PASSWORD@HOST/DATABASE --redis-url redis://HOST\n"+
		"TEST_DATABASE_URL=postgres://… TEST_REDIS_URL=redis://… make test",
		s.name, tried, s.program, s.apt)
}

// attempts are the errors of the ways that were tried.
type attempts []error

func (all attempts) Error() string {
	var list strings.Builder
	for _, err := range all {
		fmt.Fprintf(&list, "\n  - %s", strings.ReplaceAll(err.Error(), "\n", "\n    "))
	}
	return list.String()
}

func (all attempts) Unwrap() []error { return all }
