//go:build !nodev

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store"
)

// demoTenant is the only tenant that a database for dev may have.
const demoTenant = "demo"

// postgresVariables returns the names of the variables that libpq and pgx read to connect.
func postgresVariables(environ []string) (names []string) {
	for _, one := range environ {
		if name, _, _ := strings.Cut(one, "="); strings.HasPrefix(name, "PG") && name != "PGDATA" {
			names = append(names, name)
		}
	}
	return names
}

// settings reads the settings. Only the flags name servers: the shell's variables may name servers of production, and hold their key.
func (c dev) settings(environ []string) (config.Config, error) {
	rest, left := devstack.WithoutServices(environ)
	rest, file := devstack.Without(rest, config.FileVariable) // its channels send
	left = append(left, file...)
	if c.Config != "" {
		rest = append(rest, config.FileVariable+"="+c.Config)
	}
	if c.DatabaseURL == "" { // the key of the folder seals its secrets
		var keys []string
		rest, keys = devstack.Without(rest, seal.KeyVariable, seal.PreviousVariable)
		left = append(left, keys...)
		for _, name := range postgresVariables(environ) { // they change the meaning of every URL
			rest, _ = devstack.Without(rest, name)
			left = append(left, name)
			if err := os.Unsetenv(name); err != nil {
				return config.Config{}, err
			}
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "ignoring %s: dev starts its own servers and sends nothing; --database-url, --redis-url and --config name others\n", strings.Join(left, " and "))
	}
	cfg, err := config.LoadDev(append(rest, "DATABASE_URL="+c.DatabaseURL, "REDIS_URL="+c.RedisURL))
	if wrong, is := errors.AsType[config.Errors](err); is {
		for i := range wrong {
			switch wrong[i].Field {
			case "DATABASE_URL":
				wrong[i].Field = "--database-url"
			case "REDIS_URL":
				wrong[i].Field = "--redis-url"
			case config.FileVariable:
				wrong[i].Field = "--config"
			}
		}
	}
	return cfg, err
}

// sealKey returns the key in the folder, beside the data that it seals. The first run makes it.
func (c dev) sealKey() (config.Secret, error) {
	path := filepath.Join(c.Dir, "seal-key")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(seal.NewKey())
		if err = os.WriteFile(path+".new", text, 0o600); err == nil {
			err = os.Rename(path+".new", path) // a killed run leaves no half of a key
		}
	}
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if _, err := seal.New(key); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return config.Secret(key), nil
}

// refuseTenants rejects a named database with other tenants, before anything is changed in it: dev contracts the schema,
// creates a tenant and an admin, and prints due messages instead of sending them.
func refuseTenants(ctx context.Context, databaseURL string) error {
	if databaseURL == "" {
		return nil
	}
	others, err := store.OtherTenants(ctx, databaseURL, demoTenant)
	switch {
	case err != nil:
		return fmt.Errorf("--database-url: cannot read its tenants: %w", err)
	case others > 0:
		return fmt.Errorf("--database-url: the database has tenants other than %s (%d); name another database; nothing was changed", demoTenant, others)
	}
	return nil
}
