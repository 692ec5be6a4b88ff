package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os/user"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sharedPostgres makes a database of our own in the server on the standard
// port, if we may: as the user postgres, or as the user that we are. A
// password comes from PGPASSWORD or ~/.pgpass, as for psql.
func (c Config) sharedPostgres(ctx context.Context) (*Server, error) {
	users := []string{"postgres"}
	if me, err := user.Current(); err == nil && me.Username != "postgres" {
		users = append(users, me.Username)
	}
	var reasons []error
	for _, name := range users {
		server := url.URL{Scheme: "postgres", User: url.User(name), Host: c.places.postgresPort, Path: "/postgres"}
		s, err := c.borrowDatabase(ctx, server)
		if err == nil {
			return s, nil
		}
		reasons = append(reasons, err)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) {
			break // it does not even answer: another user fares no better
		}
	}
	return nil, fmt.Errorf("server at %s: %w", c.places.postgresPort, errors.Join(reasons...))
}

func (c Config) borrowDatabase(ctx context.Context, server url.URL) (*Server, error) {
	own := server
	own.Path = "/sendquota_dev_" + strings.ToLower(rand.Text()[:10])
	name := pgx.Identifier{own.Path[1:]}.Sanitize()
	do := func(ctx context.Context, statement string) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return Exec(ctx, server.String(), statement)
	}
	if err := do(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	c.log.Printf("postgres: a new database in the server at %s, dropped at the end: %s", server.Host, own.Path[1:])
	return &Server{Name: "postgres", URL: own.String(), release: func() error {
		return do(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}}, nil
}

// Exec connects to a Postgres and runs one statement.
func Exec(ctx context.Context, url, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement, args...)
	return err
}
