package accounts_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/accounts"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
)

// createKey creates a key as the operator's tool does.
func (b *bundle) createKey(ctx context.Context, tenant uuid.UUID, scopes []string, lifetime time.Duration) (string, error) {
	_, key, err := b.CreateKey(ctx, apikey.NewKey{Tenant: tenant, Scopes: scopes, Lifetime: lifetime})
	return key, err
}

// rotateKey rotates a key of any tenant.
func (b *bundle) rotateKey(ctx context.Context, id uuid.UUID, overlap, lifetime time.Duration) (string, error) {
	_, key, err := b.RotateKey(ctx, nil, id, overlap, lifetime)
	return key, err
}

func (b *bundle) revokeKey(ctx context.Context, id uuid.UUID) (bool, error) {
	return b.RevokeKey(ctx, nil, id)
}

// TestKeys_MakerEndsMeanwhile checks that a key is limited to the rights that its maker has once the maker's row is
// locked.
func TestKeys_MakerEndsMeanwhile(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	create := func(by *push.Caller) (apikey.Key, error) {
		k, _, err := b.CreateKey(t.Context(), apikey.NewKey{Tenant: b.TenantID, By: by, Scopes: []string{push.ScopeRead}})
		return k, err
	}
	other, err := create(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, work := range map[string]func(by *push.Caller) (apikey.Key, error){
		"create": create,
		"rotate": func(by *push.Caller) (apikey.Key, error) {
			k, _, err := b.RotateKey(t.Context(), by, other.ID, 0, 0)
			return k, err
		},
	} {
		for _, change := range []string{`revoked_at = now()`, `expires_at = now() + '1 hour'`} {
			k, err := create(nil)
			if err != nil {
				t.Fatal(err)
			}
			b.Exec(t, `BEGIN`)
			b.Exec(t, `UPDATE api_keys SET `+change+` WHERE id = $1`, k.ID)
			var made apikey.Key
			done := make(chan error, 1)
			go func() {
				var err error
				made, err = work(&push.Caller{Tenant: b.TenantID, Scopes: push.Scopes, Key: k.ID})
				done <- err
			}()
			b.Waiting(t, 1)
			b.Exec(t, `COMMIT`)
			err = <-done
			revoked := strings.HasPrefix(change, "revoked")
			if errors.Is(err, apikey.ErrCallerOver) != revoked || !revoked && (err != nil || made.ExpiresAt == nil) {
				t.Errorf("%s, %s: %+v, %v", name, change, made, err)
			}
		}
	}
}

// TestCreateKey: only the hash of a key is stored, and a key may expire.
func TestCreateKey(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	id, created, err := b.CreateTenant(t.Context(), "acme")
	if err != nil || !created {
		t.Fatal(created, err)
	}
	if again, created, err := b.CreateTenant(t.Context(), "acme"); again != id || created || err != nil {
		t.Errorf("%s, created %v, %v", again, created, err)
	}
	if _, err := b.Tenant(t.Context(), "other"); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("%v", err)
	}
	key, err := b.createKey(t.Context(), id, []string{push.ScopeRead, push.ScopeRead}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := b.Key(t.Context(), accounts.HashKey(key)); err != nil || c.Tenant != id || !slices.Equal(c.Scopes, []string{push.ScopeRead}) {
		t.Errorf("%+v, %v", c, err)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM api_keys WHERE position($1 IN encode(hash, 'escape') || array_to_string(scopes, ' ')) > 0`, key); n != 0 {
		t.Error("the key itself is stored")
	}
	if _, err := b.Key(t.Context(), accounts.HashKey(key+"x")); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("another key: %v", err)
	}
	short, err := b.createKey(t.Context(), id, push.Scopes, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Key(t.Context(), accounts.HashKey(short)); err != nil {
		t.Errorf("a key in its time: %v", err)
	}
	b.Exec(t, `UPDATE api_keys SET expires_at = clock_timestamp() WHERE expires_at IS NOT NULL`)
	if _, err := b.Key(t.Context(), accounts.HashKey(short)); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("a key whose time is over: %v", err)
	}
	if _, err := b.createKey(t.Context(), uuid.New(), push.Scopes, 0); err == nil {
		t.Error("a key for no tenant")
	}
}

// keyOf finds a key in the list of all keys.
func (b *bundle) keyOf(t *testing.T, key string) apikey.Key {
	t.Helper()
	c, err := b.Key(t.Context(), accounts.HashKey(key))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := b.Keys(t.Context(), c.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(keys, func(k apikey.Key) bool { return k.ID == c.Key })
	if i < 0 {
		t.Fatalf("key %s is not among %+v", c.Key, keys)
	}
	return keys[i]
}

// TestRotateKey checks that the old key and the new one are both valid during the overlap, and that the old one then
// ends.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, err := b.createKey(t.Context(), b.TenantID, []string{push.ScopeRead}, 720*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	first := b.keyOf(t, old)
	fresh, err := b.rotateKey(t.Context(), first.ID, time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	second := b.keyOf(t, fresh)
	if second.ID == first.ID || !slices.Equal(second.Scopes, first.Scopes) || second.Tenant != first.Tenant || second.State != apikey.Live {
		t.Errorf("the new key: %+v", second)
	}
	if left := time.Until(*second.ExpiresAt); left < 719*time.Hour || left > 720*time.Hour {
		t.Errorf("the new key has %s left, want what the old one was made for", left)
	}
	if left := time.Until(*b.keyOf(t, old).ExpiresAt); left < 59*time.Minute || left > time.Hour {
		t.Errorf("the old key has %s left, want the overlap", left)
	}

	// A second rotation is rejected, and the error names the successor, as long as the successor is valid.
	var replaced *apikey.ReplacedError
	if _, err := b.rotateKey(t.Context(), first.ID, time.Hour, 0); !errors.As(err, &replaced) || *replaced != (apikey.ReplacedError{Key: first.ID, Successor: second.ID}) {
		t.Errorf("rotated twice: %v", err)
	}
	if b.keyOf(t, old).Successor != second.ID || b.keyOf(t, fresh).Successor != uuid.Nil {
		t.Errorf("listed: %+v, %+v", b.keyOf(t, old), b.keyOf(t, fresh))
	}
	if _, err := b.revokeKey(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}

	// The overlap does not become the lifetime of the next key, and never postpones an expiry.
	third, err := b.rotateKey(t.Context(), first.ID, 48*time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(*b.keyOf(t, third).ExpiresAt); left < 719*time.Hour {
		t.Errorf("the third key has %s left", left)
	}
	if left := time.Until(*b.keyOf(t, old).ExpiresAt); left > time.Hour {
		t.Errorf("the old key has %s left again", left)
	}

	// The successor cannot be rotated meanwhile, so that there is no third valid key.
	if _, err := b.rotateKey(t.Context(), b.keyOf(t, third).ID, 0, 0); !errors.As(err, &replaced) || *replaced != (apikey.ReplacedError{Key: first.ID, Successor: b.keyOf(t, third).ID}) {
		t.Errorf("the successor was rotated: %v", err)
	}
	if _, err := b.revokeKey(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}

	// Without an overlap the old key ends at once. The new key may have another lifetime.
	fourth, err := b.rotateKey(t.Context(), b.keyOf(t, third).ID, 0, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Key(t.Context(), accounts.HashKey(third)); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("the third key: %v", err)
	}
	if left := time.Until(*b.keyOf(t, fourth).ExpiresAt); left > 24*time.Hour {
		t.Errorf("the fourth key has %s left", left)
	}
	endless, err := b.createKey(t.Context(), b.TenantID, push.Scopes, 0)
	if err != nil {
		t.Fatal(err)
	}
	next, err := b.rotateKey(t.Context(), b.keyOf(t, endless).ID, time.Hour, 0)
	if err != nil || b.keyOf(t, next).ExpiresAt != nil || b.keyOf(t, endless).ExpiresAt == nil {
		t.Errorf("the rotation of a key without end: %v", err)
	}
}

// TestRotateKey_Concurrent checks that one of several concurrent rotations of a key creates a new key.
func TestRotateKey_Concurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, err := b.createKey(t.Context(), b.TenantID, push.Scopes, 0)
	if err != nil {
		t.Fatal(err)
	}
	id := b.keyOf(t, key).ID
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			var replaced *apikey.ReplacedError
			if _, err := b.rotateKey(t.Context(), id, time.Hour, 0); err != nil && !errors.As(err, &replaced) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys, err := b.Keys(t.Context(), b.TenantID); err != nil || len(keys) != 2 {
		t.Errorf("%d keys, want 2 (%v)", len(keys), err)
	}
}

// TestRevokeKey checks that a revoked key is rejected, cannot be rotated, and can be revoked again without a change.
func TestRevokeKey(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	key, err := b.createKey(t.Context(), b.TenantID, push.Scopes, 0)
	if err != nil {
		t.Fatal(err)
	}
	id := b.keyOf(t, key).ID
	if before, err := b.revokeKey(t.Context(), id); err != nil || before {
		t.Fatal(before, err)
	}
	if _, err := b.Key(t.Context(), accounts.HashKey(key)); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("a revoked key: %v", err)
	}
	list, err := b.Keys(t.Context(), b.TenantID)
	if err != nil || len(list) != 1 || list[0].State != apikey.Revoked || list[0].RevokedAt == nil {
		t.Fatalf("%+v, %v", list, err)
	}
	if before, err := b.revokeKey(t.Context(), id); err != nil || !before {
		t.Error(before, err)
	}
	again, err := b.Keys(t.Context(), uuid.Nil)
	if err != nil || len(again) != 1 || !again[0].RevokedAt.Equal(*list[0].RevokedAt) {
		t.Errorf("revoked twice: %+v, %v", again, err)
	}
	if _, err := b.rotateKey(t.Context(), id, time.Hour, 0); !errors.Is(err, apikey.ErrOver) {
		t.Errorf("rotated: %v", err)
	}
	for name, err := range map[string]error{
		"revoke": func() error { _, err := b.revokeKey(t.Context(), uuid.New()); return err }(),
		"rotate": func() error { _, err := b.rotateKey(t.Context(), uuid.New(), 0, 0); return err }(),
	} {
		if !errors.Is(err, push.ErrNotFound) {
			t.Errorf("%s of no key: %v", name, err)
		}
	}
}

// TestRecordKeyUse_OnceAMinute checks that the last use of a key is stored at most once a minute.
func TestRecordKeyUse_OnceAMinute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, err := b.createKey(t.Context(), b.TenantID, push.Scopes, 0)
	if err != nil {
		t.Fatal(err)
	}
	id := b.keyOf(t, key).ID
	see := func(wantUnseen bool) time.Time {
		t.Helper()
		if c, err := b.Key(t.Context(), accounts.HashKey(key)); err != nil || c.Unseen != wantUnseen {
			t.Errorf("unseen %v, want %v (%v)", c.Unseen, wantUnseen, err)
		}
		if err := b.RecordKeyUse(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return *b.keyOf(t, key).LastUsedAt
	}
	first := see(true)
	if again := see(false); !again.Equal(first) {
		t.Errorf("noted at %s and at %s", first, again)
	}
	b.Exec(t, `UPDATE api_keys SET last_used_at = last_used_at - interval '61 seconds' WHERE id = $1`, id)
	if again := see(true); !again.After(first) {
		t.Errorf("noted at %s, and a minute later at %s", first, again)
	}
}

// TestKey_TimeLeft checks that a caller has the remaining time of its key, by Postgres' clock.
func TestKey_TimeLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, ttl := range []time.Duration{0, time.Hour, 100 * 24 * time.Hour} {
		key, err := b.createKey(t.Context(), b.TenantID, push.Scopes, ttl)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := b.Key(t.Context(), accounts.HashKey(key)); err != nil || c.Left > ttl || ttl-c.Left > 10*time.Minute {
			t.Errorf("%s left of %s (%v)", c.Left, ttl, err)
		}
	}
}

// TestCreateKey_Most checks the maximum of live keys, and that the keys that ended first are forgotten.
func TestCreateKey_Most(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	create := func(most int) error {
		_, _, err := b.CreateKey(t.Context(), apikey.NewKey{Tenant: b.TenantID, Scopes: push.Scopes, Most: most})
		return err
	}
	if err := errors.Join(create(2), create(2)); err != nil {
		t.Fatal(err)
	}
	if err := create(2); !errors.Is(err, apikey.ErrTooMany) {
		t.Errorf("%v", err)
	}
	b.Exec(t, `
		INSERT INTO api_keys (id, tenant_id, hash, scopes, revoked_at)
		SELECT gen_random_uuid(), $1, sha256(n::text::bytea), '{}', clock_timestamp() - n * interval '1 hour' FROM generate_series(1, 1003) n`, [16]byte(b.TenantID))
	b.Exec(t, `UPDATE api_keys SET successor = (SELECT id FROM api_keys WHERE revoked_at IS NOT NULL ORDER BY revoked_at LIMIT 1) WHERE revoked_at IS NULL`)
	if err := create(3); err != nil {
		t.Fatal(err)
	}
	if n, oldest := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM api_keys`), storetest.Ask[int](t, b.DB, `SELECT count(*) FROM api_keys WHERE revoked_at < clock_timestamp() - interval '1001 hours'`); n != 1003 || oldest != 0 {
		t.Errorf("%d keys, %d of them long over", n, oldest)
	}
	if err := create(0); err != nil {
		t.Error(err)
	}
}

// TestCreateKey_MostConcurrent checks that concurrent requests do not exceed the maximum.
func TestCreateKey_MostConcurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, _, err := b.CreateKey(t.Context(), apikey.NewKey{Tenant: b.TenantID, Scopes: push.Scopes, Most: 3}); err != nil && !errors.Is(err, apikey.ErrTooMany) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys, err := b.Keys(t.Context(), b.TenantID); err != nil || len(keys) != 3 {
		t.Errorf("%d keys, want 3 (%v)", len(keys), err)
	}
}

// TestKeys_CommitUnknown checks that a key whose commit lost its reply is created once, and that its secret is valid.
func TestKeys_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	w.LoseNext("COMMIT")
	first, secret, err := b.CreateKey(t.Context(), apikey.NewKey{Tenant: b.TenantID, Scopes: push.Scopes, Most: 1})
	w.WantLost(t, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.LoseNext("COMMIT")
	second, fresh, err := b.RotateKey(t.Context(), &push.Caller{Tenant: b.TenantID, Scopes: push.Scopes}, first.ID, time.Hour, 0)
	w.WantLost(t, 2)
	if err != nil {
		t.Fatal(err)
	}
	if b.keyOf(t, secret).ID != first.ID || b.keyOf(t, fresh).ID != second.ID || b.keyOf(t, secret).Successor != second.ID {
		t.Errorf("%+v, %+v", b.keyOf(t, secret), b.keyOf(t, fresh))
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM api_keys WHERE tenant_id = $1`, b.TenantID); n != 2 {
		t.Errorf("%d keys", n)
	}
}
