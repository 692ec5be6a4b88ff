package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

// keyed opens a store on the bundle's database with other keys. The first key seals.
func (b *bundle) keyed(t testing.TB, keys ...string) *store.Store {
	t.Helper()
	sealer, err := seal.New(keys...)
	testenv.Check(t, err)
	st, err := store.Open(t.Context(), b.URL, pg.Config{Sealer: sealer, MaxConns: 4, ReadConns: 2, Lanes: *storetest.Lanes, Timeout: time.Minute, ReadTimeout: time.Minute})
	testenv.Check(t, err)
	t.Cleanup(st.Close)
	return st
}

// unopened counts the sealed values, and those that the store's keys do not open; 0 and 0 if they open all.
func unopened(t testing.TB, st *store.Store) (sealed, unopened int) {
	t.Helper()
	err := st.CheckSeals(t.Context())
	if e, is := errors.AsType[*pg.SealsError](err); is {
		return e.Sealed, e.Sealed - e.Opened
	}
	testenv.Check(t, err)
	return 0, 0
}

// TestSecrets_OwnRow checks that a sealed secret does not sign for another webhook, tenant or column. The error names
// the row.
func TestSecrets_OwnRow(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	donor := b.Hook(t)
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'neighbour')`)
	forged := map[uuid.UUID]string{}
	for _, sql := range []string{
		`UPDATE webhooks SET secret = d.secret FROM (SELECT secret FROM webhooks WHERE id = $2) d WHERE id = $1`,
		`UPDATE webhooks SET old_secret = secret, old_secret_until = now() + interval '1 hour' WHERE id = $1 AND id <> $2`,
		`UPDATE webhooks SET secret = set_byte(secret, 40, get_byte(secret, 40) # 1) WHERE id = $1 AND id <> $2`,
		`UPDATE webhooks SET secret = substr(secret, 1, 20) WHERE id = $1 AND id <> $2`,
	} {
		w := b.Hook(t)
		forged[w.ID] = sql
		b.Exec(t, sql, w.ID, donor.ID)
	}
	if sealed, no := unopened(t, b.Store); sealed != 6 || no != 4 {
		t.Errorf("%d sealed, %d do not open", sealed, no)
	}
	b.Booked(t, "p", time.Hour)
	claimed := b.Outgoing(t)
	if len(claimed) != 5 {
		t.Fatalf("%d deliveries", len(claimed))
	}
	for _, d := range claimed {
		switch {
		case d.Webhook == donor.ID && (d.Unsigned != nil || d.Secret != "whsec_c2VjcmV0"):
			t.Errorf("the donor: %+v", d)
		case d.Webhook != donor.ID && (!errors.Is(d.Unsigned, seal.ErrDamaged) || !strings.Contains(d.Unsigned.Error(), d.Webhook.String())):
			t.Errorf("%s: %v", forged[d.Webhook], d.Unsigned)
		}
	}
	b.Exec(t, `UPDATE webhooks SET tenant_id = (SELECT id FROM tenants WHERE name = 'neighbour') WHERE id = $1`, donor.ID)
	if _, no := unopened(t, b.Store); no != 5 {
		t.Errorf("%d do not open, want also the one of another tenant", no)
	}
}

// TestCheckSeals checks that the error names a remedy unless all necessary keys are there.
func TestCheckSeals(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	was, is := seal.NewKey(), seal.NewKey()
	old := b.keyed(t, was)
	testenv.Check(t, b.keyed(t).CheckSeals(t.Context())) // nothing is sealed yet
	b.hookOf(t, old, "one")
	for _, row := range []struct {
		keys []string
		want string
	}{
		{[]string{was}, ""},
		{[]string{is, was}, ""},
		{nil, "the database has sealed secrets of webhooks and channels (1), but SENDQUOTA_SEAL_KEY is not set: set it to the key that sealed them"},
		{[]string{is}, "SENDQUOTA_SEAL_KEY does not open 1 of 1 sealed secrets of webhooks and channels in the database: set it, or SENDQUOTA_SEAL_KEY_PREVIOUS, to the key that sealed them"},
	} {
		err := b.keyed(t, row.keys...).CheckSeals(t.Context())
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%v, want %s", err, row.want)
		}
	}
	b.hookOf(t, b.keyed(t, is), "two")
	if sealed, no := unopened(t, old); sealed != 2 || no != 1 {
		t.Errorf("%d sealed, %d do not open", sealed, no)
	}
	if err := b.DeleteWebhook(t.Context(), b.TenantID, b.hookOf(t, old, "three").ID); err != nil {
		t.Fatal(err)
	}
	if sealed, _ := unopened(t, old); sealed != 2 {
		t.Errorf("a deleted webhook has a secret: %d", sealed)
	}
}

// hookOf creates a webhook with a secret in a store.
func (b *bundle) hookOf(t testing.TB, st *store.Store, secret string) webhook.Webhook {
	t.Helper()
	w, err := st.CreateWebhook(t.Context(), webhook.Webhook{ID: uuid.Must(uuid.NewV7()), Tenant: b.TenantID, URL: "https://example.com/hook", Events: webhook.Events}, secret, 1000)
	testenv.Check(t, err)
	return w
}

// secretsOf returns the secrets that a store signs the due deliveries of a tenant with, by webhook.
func (b *bundle) secretsOf(t testing.TB, st *store.Store) map[uuid.UUID]string {
	t.Helper()
	own := *b
	own.Store = st
	signed := map[uuid.UUID]string{}
	for _, d := range own.Outgoing(t) {
		if d.Unsigned != nil {
			t.Error(d.Unsigned)
		}
		signed[d.Webhook] = d.Secret + "|" + d.OldSecret
	}
	return signed
}

// TestReseal_Killed checks that resealing continues after an interruption, and that the previous key is unnecessary
// afterwards: each webhook signs with the same secrets as before.
func TestReseal_Killed(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	was, is := seal.NewKey(), seal.NewKey()
	old, both, fresh := b.keyed(t, was), b.keyed(t, is, was), b.keyed(t, is)
	want := map[uuid.UUID]string{}
	const hooks = 250 // more than two portions
	for i := range hooks {
		w := b.hookOf(t, old, fmt.Sprint("secret-", i))
		want[w.ID] = fmt.Sprint("secret-", i, "|")
		if i%3 == 0 {
			_, err := old.RotateWebhookSecret(t.Context(), b.TenantID, w.ID, fmt.Sprint("next-", i), time.Hour)
			testenv.Check(t, err)
			want[w.ID] = fmt.Sprint("next-", i, "|secret-", i)
		}
	}
	made := b.hookOf(t, both, "while both are set")
	want[made.ID] = "while both are set|"
	ctx, kill := context.WithCancel(t.Context())
	first := 0
	if _, err := both.Reseal(ctx, func(n int) { first += n; kill() }); err == nil {
		t.Error("it was not killed")
	}
	if _, no := unopened(t, both); first == 0 || first > 100 || no != 0 {
		t.Errorf("%d resealed before the end, and %d lost", first, no)
	}
	if _, no := unopened(t, fresh); no != hooks+84-first {
		t.Errorf("%d need the previous key, after %d of %d", no, first, hooks+84)
	}
	second := 0
	lost, err := both.Reseal(t.Context(), func(n int) { second += n })
	if err != nil || len(lost) > 0 || first+second != hooks+84 {
		t.Errorf("%d and %d resealed, %v lost, %v", first, second, lost, err)
	}
	testenv.Check(t, fresh.CheckSeals(t.Context()))
	if _, no := unopened(t, old); no != hooks+84+1 {
		t.Errorf("the previous key still opens some: %d", no)
	}
	b.Booked(t, "p", time.Hour)
	if diff := cmp.Diff(want, b.secretsOf(t, fresh)); diff != "" {
		t.Error(diff)
	}
	if lost, err := both.Reseal(t.Context(), func(n int) {
		if n > 0 {
			t.Errorf("%d are resealed again", n)
		}
	}); err != nil || len(lost) > 0 {
		t.Error(lost, err)
	}
}

// TestReseal_Race replaces secrets of webhooks while they are resealed, also through programs that have only the
// previous key. Such a program gets an error if it would lose a secret. Afterwards each webhook signs with its last two
// secrets, by the new key.
func TestReseal_Race(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	was, is := seal.NewKey(), seal.NewKey()
	old, both, fresh := b.keyed(t, was), b.keyed(t, is, was), b.keyed(t, is)
	var hooks []webhook.Webhook
	for range 20 {
		hooks = append(hooks, b.hookOf(t, old, "0"))
	}
	var mu sync.Mutex
	want := map[uuid.UUID]string{}
	var rotating sync.WaitGroup
	for i, w := range hooks {
		rotating.Go(func() {
			last, before := "0", ""
			for n := 1; n <= 10; n++ {
				st := []*store.Store{old, both}[(i+n)%2]
				_, err := st.RotateWebhookSecret(context.Background(), b.TenantID, w.ID, fmt.Sprint(n), time.Hour)
				switch {
				case err == nil:
					last, before = fmt.Sprint(n), last
				case st == both || !errors.Is(err, seal.ErrOtherKey):
					t.Error(err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			want[w.ID] = last + "|" + before
		})
	}
	done := make(chan struct{})
	go func() { rotating.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		if lost, err := both.Reseal(t.Context(), func(int) {}); err != nil || len(lost) > 0 {
			t.Fatal(lost, err)
		}
	}
	testenv.Check(t, fresh.CheckSeals(t.Context()))
	b.Booked(t, "p", time.Hour)
	if diff := cmp.Diff(want, b.secretsOf(t, fresh)); diff != "" {
		t.Error(diff)
	}
}

// TestReseal_ChangedMeanwhile checks that a secret stays if it is replaced between the read and the write of a portion.
func TestReseal_ChangedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	was, is := seal.NewKey(), seal.NewKey()
	both := b.keyed(t, is, was)
	w := b.hookOf(t, b.keyed(t, was), "before")
	b.Exec(t, `BEGIN`)
	b.Exec(t, `SELECT FROM webhooks WHERE id = $1 FOR UPDATE`, w.ID)
	ended := make(chan error, 1)
	go func() { _, err := both.Reseal(t.Context(), func(int) {}); ended <- err }()
	b.Waiting(t, 1)
	sealer, err := seal.New(was)
	testenv.Check(t, err)
	sealed, err := sealer.Seal([]byte("after"), seal.Cell{Table: "webhooks", Column: "secret", Row: w.ID, Tenant: b.TenantID})
	testenv.Check(t, err)
	b.Exec(t, `UPDATE webhooks SET secret = $2 WHERE id = $1`, w.ID, sealed)
	b.Exec(t, `COMMIT`)
	testenv.Check(t, <-ended)
	b.Booked(t, "p", time.Hour)
	if got := b.secretsOf(t, b.keyed(t, is)); got[w.ID] != "after|" {
		t.Errorf("it signs with %v", got)
	}
}

// TestForgetSecrets checks that a secret that no key opens is reported. Once it is forgotten, the webhook does not sign
// with it, until it gets another secret.
func TestForgetSecrets(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	was, is := seal.NewKey(), seal.NewKey()
	gone, st := b.keyed(t, was), b.keyed(t, is)
	dead, other := b.hookOf(t, gone, "dead"), b.hookOf(t, gone, "other")
	fine := b.hookOf(t, st, "fine")
	lost, err := st.Reseal(t.Context(), func(int) {})
	if err != nil || len(lost) != 2 || !errors.Is(lost[0].Err, seal.ErrOtherKey) {
		t.Fatal(lost, err)
	}
	if _, err := st.RotateWebhookSecret(t.Context(), b.TenantID, other.ID, "again", time.Hour); !errors.Is(err, seal.ErrOtherKey) {
		t.Errorf("a secret is replaced and lost: %v", err)
	}
	_, err = b.keyed(t, is, was).RotateWebhookSecret(t.Context(), b.TenantID, other.ID, "again", time.Hour) // meanwhile
	testenv.Check(t, err)
	testenv.Check(t, st.ForgetSecrets(t.Context(), lost))
	testenv.Check(t, st.CheckSeals(t.Context()))
	if w, err := st.Webhook(t.Context(), b.TenantID, dead.ID); err != nil || w.DisabledAt.IsZero() || !strings.Contains(w.DisabledReason, "rotate the secret") {
		t.Errorf("%+v, %v", w, err)
	}
	b.Booked(t, "p", time.Hour)
	if diff := cmp.Diff(map[uuid.UUID]string{fine.ID: "fine|", other.ID: "again|other"}, b.secretsOf(t, st)); diff != "" {
		t.Error(diff)
	}
	_, err = st.EnableWebhook(t.Context(), b.TenantID, dead.ID)
	testenv.Check(t, err)
	b.Booked(t, "q", 2*time.Hour)
	own := *b
	own.Store = st
	for _, d := range own.Outgoing(t) {
		if d.Webhook == dead.ID && (d.Unsigned == nil || d.Secret != "") {
			t.Errorf("it is signed with nothing: %+v", d)
		}
	}
	_, err = st.RotateWebhookSecret(t.Context(), b.TenantID, dead.ID, "alive", time.Hour)
	testenv.Check(t, err)
	b.Passes(t, time.Hour)
	if got := b.secretsOf(t, st); got[dead.ID] != "alive|" {
		t.Errorf("%v", got)
	}
}
