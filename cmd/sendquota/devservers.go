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

// demoTenant is the only tenant of a database that dev takes.
const demoTenant = "demo"

// postgresVariables names the variables by which libpq and pgx connect.
func postgresVariables(environ []string) (names []string) {
	for _, one := range environ {
		if name, _, _ := strings.Cut(one, "="); strings.HasPrefix(name, "PG") && name != "PGDATA" {
			names = append(names, name)
		}
	}
	return names
}

// settings reads the settings. Only the flags name servers: the variables of the shell may name those of production, and hold their key.
func (c dev) settings(environ []string) (config.Config, error) {
	rest, left := devstack.WithoutServices(environ)
	if c.DatabaseURL == "" { // its secrets are sealed by the key of the folder
		var keys []string
		rest, keys = devstack.Without(rest, seal.KeyVariable, seal.PreviousVariable)
		left = append(left, keys...)
		for _, name := range postgresVariables(environ) { // they change what every URL means
			rest, _ = devstack.Without(rest, name)
			left = append(left, name)
			if err := os.Unsetenv(name); err != nil {
				return config.Config{}, err
			}
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "ignoring %s: dev uses servers of its own; --database-url and --redis-url name others\n", strings.Join(left, " and "))
	}
	cfg, err := config.LoadDev(append(rest, "DATABASE_URL="+c.DatabaseURL, "REDIS_URL="+c.RedisURL))
	if wrong, is := errors.AsType[config.Errors](err); is {
		for i := range wrong {
			switch wrong[i].Field {
			case "DATABASE_URL":
				wrong[i].Field = "--database-url"
			case "REDIS_URL":
				wrong[i].Field = "--redis-url"
			}
		}
	}
	return cfg, err
}

// sealKey returns the key that is kept in the folder, beside the data that it seals. The first run makes it.
func (c dev) sealKey() (config.Secret, error) {
	path := filepath.Join(c.Dir, "seal-key")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(seal.NewKey())
		if err = os.WriteFile(path+".new", text, 0o600); err == nil {
			err = os.Rename(path+".new", path) // a run that is killed leaves no half of a key
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

// refuseTenants rejects a named database that others work with, before anything is changed in it: dev contracts the schema,
// makes a tenant and an admin, and prints messages that are due instead of sending them.
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
