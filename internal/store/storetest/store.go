// Package storetest is the harness of the store's tests: shared databases, and helpers to forge, lock and read their
// rows.
package storetest

import (
	"cmp"
	"encoding/json"
	"flag"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// Lanes is 256 in a second run of these tests: then each shard is a lane.
var Lanes = flag.Int("lanes", 4, "into how many lanes the stores divide all recipients")

// Main runs the tests of a package, and closes the databases that they shared. A TestMain calls it.
func Main(m *testing.M) {
	testenv.Main(m, func(t testenv.T) {
		testenv.Finally(t, sharedStores.close)
		testenv.Finally(t, ownStores.close)
	})
}

var ThreeRules = quota.Policy{
	{Name: "per-minute", Limit: 1, Window: time.Minute},
	{Name: "per-hour", Limit: 5, Window: time.Hour},
	{Name: "per-day", Limit: 10, Window: 24 * time.Hour},
}

// OpenURL opens a store. Transactions and reads have timeouts that suffice on a busy machine, unless the test sets
// others.
func OpenURL(t testenv.T, url string, cfg pg.Config) *store.Store {
	t.Helper()
	cfg.Lanes = cmp.Or(cfg.Lanes, *Lanes)
	cfg.Timeout, cfg.ReadTimeout = cmp.Or(cfg.Timeout, time.Minute), cmp.Or(cfg.ReadTimeout, 30*time.Second)
	cfg.Sealer = cmp.Or(cfg.Sealer, testenv.Sealer())
	st, err := store.Open(t.Context(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// Began is the start of these tests. Drafts count from it, not from now, so that pushes that conflict by seconds do not
// depend on the end of a second.
var Began = time.Now().UTC().Truncate(time.Second)

// Draft returns a push for a recipient, a duration after the start of the tests.
func Draft(tenant uuid.UUID, recipient string, in time.Duration) booking.Draft {
	at := Began.Add(in)
	return booking.Draft{Push: push.Push{
		Content: push.Content{Recipient: recipient, Channel: "log", Message: json.RawMessage(`{"title":"hello"}`)},
		ID:      push.NewID(at, push.RecipientKey(tenant, recipient)), Tenant: tenant, RequestedSendAt: at, SendAt: at, TTL: 24 * time.Hour,
	}}
}

// MustBook books one draft and returns its decision.
func MustBook(t testing.TB, st *store.Store, policy quota.Policy, d booking.Draft) booking.Decision {
	t.Helper()
	v, err := st.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: policy, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}
