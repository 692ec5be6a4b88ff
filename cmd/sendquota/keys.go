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

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/user"
)

type createKey struct {
	jsonFlag
	Tenant  string         `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Scopes  []string       `default:"pushes:write,pushes:read,quota:read,limits:take,webhooks:manage,recipients:read,recipients:write,policy:read,policy:write,campaigns:read,campaigns:draft,campaigns:write,records:read,keys:read,keys:write,users:read,users:write" placeholder:"a,b" help:"What the key allows: pushes:write, pushes:read, quota:read, limits:take, webhooks:manage, recipients:read, recipients:write (includes recipients:read), policy:read, policy:write (includes policy:read), campaigns:read, campaigns:draft (includes campaigns:read), campaigns:write (includes campaigns:draft), records:read, keys:read, keys:write (includes keys:read), users:read, users:write (includes users:read). Default: all."`
	Expires *time.Duration `placeholder:"30d" help:"How long the key is valid. Default: for ever."`
	Name    string         `placeholder:"NAME" help:"What the lists of keys call it: to 100 printable bytes. Default: nothing."`
}

// Validate is called by kong. A flag that is given without a value, as with a shell variable that is not set, must
// not be taken for one that is absent.
func (c createKey) Validate() error {
	wrong := []error{checkExpires(c.Expires), checkName(c.Name)}
	if len(c.Scopes) == 0 {
		wrong = append(wrong, fmt.Errorf("--scopes: is empty; there are: %s", strings.Join(push.Scopes, ", ")))
	}
	for _, s := range c.Scopes {
		if !slices.Contains(push.Scopes, s) {
			wrong = append(wrong, fmt.Errorf("--scopes: unknown scope %s; there are: %s", brief(s), strings.Join(push.Scopes, ", ")))
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
		k, secret, err := st.CreateKey(ctx, push.NewKey{Tenant: tenant, Name: c.Name, Scopes: c.Scopes, Lifetime: orZero(c.Expires)})
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
		return fmt.Errorf("--expires %s: must be positive, and a second at least", duration.Words(*expires))
	}
	return nil
}

// orZero is 0 for what was not given.
func orZero(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

func tenantNamed(ctx context.Context, st *store.Store, name string) (uuid.UUID, error) {
	id, err := st.Tenant(ctx, name)
	if errors.Is(err, push.ErrNotFound) {
		return id, fmt.Errorf("there is no tenant %s, or it is being deleted: see sendquota tenants list, or make it with: sendquota tenants create %s", brief(name), brief(name))
	}
	return id, err
}

// show prints a new key alone on standard output, for scripts, and its id beside that.
func (f jsonFlag) show(k push.APIKey, secret string) error {
	shown := struct {
		keyView
		Secret string `json:"secret"`
	}{keyViewOf(k), secret}
	if err := f.print(shown, "%s\n", secret); err != nil {
		return fmt.Errorf("key %s was made, and could not be printed; revoke it: sendquota keys revoke %[1]s: %w", k.ID, err)
	}
	fmt.Fprintf(os.Stderr, "key %s; it is shown this once\n", k.ID)
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
	ID         uuid.UUID     `json:"id"`
	Tenant     string        `json:"tenant"`
	Name       string        `json:"name"`
	State      push.KeyState `json:"state"`
	Scopes     []string      `json:"scopes"`
	CreatedAt  time.Time     `json:"created_at"`
	ExpiresAt  *time.Time    `json:"expires_at"`
	LastUsedAt *time.Time    `json:"last_used_at"`
	RevokedAt  *time.Time    `json:"revoked_at"`
	Successor  *uuid.UUID    `json:"successor"` // what its last rotation made
}

func keyViewOf(k push.APIKey) keyView {
	v := keyView{k.ID, k.Tenant, k.Name, k.State, k.Scopes, k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.RevokedAt, nil}
	if k.Successor != uuid.Nil {
		v.Successor = &k.Successor
	}
	return v
}

func printKeys(w io.Writer, asJSON bool, keys []push.APIKey) error {
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

// UnmarshalText reads an id. What may be a key itself is not repeated: it is longer than an id, or has its beginning.
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
		verb := map[bool]string{true: "was revoked before", false: "is revoked; it is refused within a second"}[before]
		return c.print(map[string]any{"id": c.ID.UUID, "revoked_before": before}, "key %s %s\n", c.ID, verb)
	})
}

// about explains that there is no key, or no user, with this id.
func about(kind string, id uuid.UUID, err error) error {
	if errors.Is(err, push.ErrNotFound) {
		return fmt.Errorf("there is no %s %s; see: sendquota %ss list", kind, id, kind)
	}
	return err
}

type rotateKey struct {
	jsonFlag
	ID      keyID          `arg:"" help:"The id of the key to be replaced, as sendquota keys list shows it."`
	Overlap time.Duration  `default:"24h" placeholder:"24h" help:"How long the old key still lives; 0s: it ends at once."`
	Expires *time.Duration `placeholder:"30d" help:"How long the new key is valid. Default: as long as the old one was made for."`
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
