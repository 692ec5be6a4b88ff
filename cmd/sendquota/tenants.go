package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

type createTenant struct {
	Name string `arg:"" help:"Name of the tenant: 1 to 100 printable characters."`
}

// Validate is called by kong.
func (c createTenant) Validate() error {
	if c.Name == "" || len([]rune(c.Name)) > 100 || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("name %q: must be 1 to 100 printable characters", c.Name)
	}
	return nil
}

func (c createTenant) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		id, created, err := st.CreateTenant(ctx, c.Name)
		if err != nil {
			return err
		}
		verb := map[bool]string{true: "created", false: "exists already"}[created]
		fmt.Printf("tenant %s %s, id %s\n", c.Name, verb, id)
		return nil
	})
}

type createKey struct {
	Tenant  string         `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Scopes  []string       `default:"pushes:write,pushes:read,quota:read,limits:take" placeholder:"a,b" help:"What the key allows: pushes:write, pushes:read, quota:read, limits:take. Default: all."`
	Expires *time.Duration `placeholder:"720h" help:"How long the key is valid. Default: for ever."`
}

// Validate is called by kong. A flag that is given without a value, as with a
// shell variable that is not set, must not be taken for one that is absent.
func (c createKey) Validate() error {
	if c.Expires != nil && *c.Expires < time.Second {
		return fmt.Errorf("--expires %s: must be positive, and a second at least", *c.Expires)
	}
	if len(c.Scopes) == 0 {
		return fmt.Errorf("--scopes: is empty; there are: %s", strings.Join(push.Scopes, ", "))
	}
	for _, s := range c.Scopes {
		if !slices.Contains(push.Scopes, s) {
			return fmt.Errorf("--scopes: unknown scope %q; there are: %s", s, strings.Join(push.Scopes, ", "))
		}
	}
	return nil
}

func (c createKey) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		tenant, err := st.Tenant(ctx, c.Tenant)
		if errors.Is(err, push.ErrNotFound) {
			return fmt.Errorf("there is no tenant %q; make it with: sendquota tenants create %q", c.Tenant, c.Tenant)
		}
		if err != nil {
			return err
		}
		var expires time.Duration // 0: never
		if c.Expires != nil {
			expires = *c.Expires
		}
		key, err := st.CreateKey(ctx, tenant, c.Scopes, expires)
		if err != nil {
			return err
		}
		fmt.Println(key)
		return nil
	})
}
