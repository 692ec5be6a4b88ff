package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/user"
)

type createKey struct {
	jsonFlag
	Tenant  string         `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Scopes  []string       `default:"pushes:write,pushes:read,quota:read,limits:take,webhooks:manage,recipients:read,recipients:write,policy:read,policy:write,campaigns:read,campaigns:draft,campaigns:write,records:read,keys:read,keys:write,users:read,users:write,pauses:read,pauses:write,channels:read,channels:write,suppressions:read,suppressions:write" placeholder:"a,b" help:"The scopes of the key: pushes:write, pushes:read, quota:read, limits:take, webhooks:manage, recipients:read, recipients:write (includes recipients:read), policy:read, policy:write (includes policy:read), campaigns:read, campaigns:draft (includes campaigns:read), campaigns:write (includes campaigns:draft), records:read, keys:read, keys:write (includes keys:read), users:read, users:write (includes users:read), pauses:read, pauses:write (includes pauses:read), channels:read, channels:write (includes channels:read), suppressions:read, suppressions:write (includes suppressions:read). Default: all."`
	Expires *time.Duration `placeholder:"30d" help:"How long the key is valid. Default: for ever."`
	Name    string         `placeholder:"NAME" help:"The name of the key in lists: at most 100 printable bytes. Default: none."`
}

// Validate is called by kong. It rejects a flag with an empty value, as from a shell variable that is not set: it is not
// the same as an absent flag.
func (c createKey) Validate() error {
	wrong := []error{checkExpires(c.Expires), checkName(c.Name)}
	if len(c.Scopes) == 0 {
		wrong = append(wrong, fmt.Errorf("--scopes: is empty; the scopes are: %s", strings.Join(push.Scopes, ", ")))
	}
	for _, s := range c.Scopes {
		if !slices.Contains(push.Scopes, s) {
			wrong = append(wrong, fmt.Errorf("--scopes: unknown scope %s; the scopes are: %s", brief(s), strings.Join(push.Scopes, ", ")))
		}
	}
	return errors.Join(wrong...)
}

func (c createKey) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		tenant, err := tenantNamed(ctx, st, c.Tenant)
		if err != nil {
			return err
		}
		k, secret, err := st.CreateKey(ctx, apikey.NewKey{Tenant: tenant, Name: c.Name, Scopes: c.Scopes, Lifetime: orZero(c.Expires)})
		if err != nil {
			return err
		}
		return c.show(k, secret)
	})
}

// checkName checks the name of a key or a user.
func checkName(name string) error {
	if len(name) > user.MaxName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("--name %s: must have at most 100 bytes, all printable", brief(name))
	}
	return nil
}

func checkExpires(expires *time.Duration) error {
	if expires != nil && *expires < time.Second {
		return fmt.Errorf("--expires %s: must be positive, at least a second", duration.Words(*expires))
	}
	return nil
}

// orZero returns the duration, or 0 for nil.
func orZero(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

func tenantNamed(ctx context.Context, st *store.Store, name string) (uuid.UUID, error) {
	id, err := st.Tenant(ctx, name)
	if errors.Is(err, push.ErrNotFound) {
		return id, fmt.Errorf("there is no tenant %s, or it is being deleted; see: sendquota tenants list; to create it: sendquota tenants create %s", brief(name), brief(name))
	}
	return id, err
}

// show prints a new key alone on standard output, for scripts, and its id on standard error.
func (f jsonFlag) show(k apikey.Key, secret string) error {
	shown := struct {
		keyView
		Secret string `json:"secret"`
	}{keyViewOf(k), secret}
	if err := f.print(shown, "%s\n", secret); err != nil {
		return fmt.Errorf("key %s was created, and could not be printed; revoke it: sendquota keys revoke %[1]s: %w", k.ID, err)
	}
	fmt.Fprintf(os.Stderr, "key %s; it is shown only once\n", k.ID)
	return nil
}

type listKeys struct{ listOfTenant }

func (c listKeys) Run() error {
	return c.withTenant(func(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
		keys, err := st.Keys(ctx, tenant)
		if err != nil {
			return err
		}
		return printKeys(os.Stdout, c.JSON, keys)
	})
}

type keyView struct {
	ID         uuid.UUID    `json:"id"`
	Tenant     string       `json:"tenant"`
	Name       string       `json:"name"`
	State      apikey.State `json:"state"`
	Scopes     []string     `json:"scopes"`
	CreatedAt  time.Time    `json:"created_at"`
	ExpiresAt  *time.Time   `json:"expires_at"`
	LastUsedAt *time.Time   `json:"last_used_at"`
	RevokedAt  *time.Time   `json:"revoked_at"`
	Successor  *uuid.UUID   `json:"successor"` // the key that its last rotation created
}

func keyViewOf(k apikey.Key) keyView {
	v := keyView{k.ID, k.Tenant, k.Name, k.State, k.Scopes, k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.RevokedAt, nil}
	if k.Successor != uuid.Nil {
		v.Successor = &k.Successor
	}
	return v
}

func printKeys(w io.Writer, asJSON bool, keys []apikey.Key) error {
	views := make([]keyView, len(keys))
	for i, k := range keys {
		views[i] = keyViewOf(k)
	}
	titles := []string{"ID", "TENANT", "NAME", "STATE", "SCOPES", "CREATED", "EXPIRES", "LAST USED", "REVOKED", "SUCCESSOR"}
	return printList(w, asJSON, "keys", views, titles, func(k keyView) []string {
		return []string{
			k.ID.String(), k.Tenant, cmp.Or(k.Name, "-"), string(k.State), strings.Join(k.Scopes, ","),
			timeOrDash(&k.CreatedAt), timeOrDash(k.ExpiresAt), timeOrDash(k.LastUsedAt), timeOrDash(k.RevokedAt), idOrDash(k.Successor),
		}
	})
}

// keyID is the id of a key on the command line.
type keyID struct{ uuid.UUID }

// UnmarshalText parses an id. The error does not repeat a text that may be a key: one that is long, or contains the prefix of keys.
func (id *keyID) UnmarshalText(text []byte) (err error) {
	if id.UUID, err = uuid.ParseBytes(text); err == nil {
		return nil
	}
	const expected = "expected the id of a key, a UUID as sendquota keys list shows it"
	if given := string(text); len(given) <= 40 && !strings.Contains(given, "sq_") {
		return fmt.Errorf("%q: %s", given, expected)
	}
	return errors.New(expected + ", not the key itself")
}

type revokeKey struct {
	jsonFlag
	ID keyID `arg:"" help:"The key's id, as sendquota keys list shows it."`
}

func (c revokeKey) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		before, err := st.RevokeKey(ctx, nil, c.ID.UUID)
		if err != nil {
			return about("key", c.ID.UUID, err)
		}
		verb := map[bool]string{true: "was revoked before", false: "is revoked; every API refuses it within a second"}[before]
		return c.print(map[string]any{"id": c.ID.UUID, "revoked_before": before}, "key %s %s\n", c.ID, verb)
	})
}

// about replaces [push.ErrNotFound] by an error that names the kind and the id.
func about(kind string, id uuid.UUID, err error) error {
	if errors.Is(err, push.ErrNotFound) {
		return fmt.Errorf("there is no %s %s; see: sendquota %ss list", kind, id, kind)
	}
	return err
}

type rotateKey struct {
	jsonFlag
	ID      keyID          `arg:"" help:"The id of the key to be replaced, as sendquota keys list shows it."`
	Overlap time.Duration  `default:"24h" placeholder:"24h" help:"How long the old key stays valid; 0s: it ends at once."`
	Expires *time.Duration `placeholder:"30d" help:"How long the new key is valid. Default: the lifetime of the old key."`
}

// Validate is called by kong.
func (c rotateKey) Validate() error {
	var overlap error
	if c.Overlap < 0 {
		overlap = fmt.Errorf("--overlap %s: must not be negative", duration.Words(c.Overlap))
	}
	return errors.Join(overlap, checkExpires(c.Expires))
}

func (c rotateKey) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		k, secret, err := st.RotateKey(ctx, nil, c.ID.UUID, c.Overlap, orZero(c.Expires))
		if err != nil {
			return about("key", c.ID.UUID, err)
		}
		return c.show(k, secret)
	})
}
