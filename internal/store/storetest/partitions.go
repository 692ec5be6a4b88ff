package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

const Day = 24 * time.Hour

var Kept = booking.Kept{Pushes: 90 * Day, Sends: 100 * Day}

// WeekOf returns the name of a table's weekly partition with the rows of some time ago.
func WeekOf(table string, ago time.Duration) string {
	return table + time.Now().UTC().Add(-ago).Truncate(7*Day).Format("_20060102")
}

// Parts makes the partitions for some times ago, and reloads the store's layout.
func (b *Bundle) Parts(t testing.TB, ago ...time.Duration) {
	t.Helper()
	for _, ago := range ago {
		b.Exec(t, `SELECT make_partitions('pushes', at, at), make_partitions('sends', at, at) FROM (SELECT now() - $1::interval AS at) a`, ago)
	}
	b.Layouts.Forget()
}

// Old makes some of the old partitions.
func (b *Bundle) Old(t testing.TB) {
	t.Helper()
	b.Parts(t, 97*Day, 99*Day, 104*Day, 150*Day)
	b.Exec(t, `SELECT make_partitions('idempotency', now() - interval '70 days', now() - interval '10 days')`)
}

// MustPartitions returns the names of all partitions of pushes, sends and idempotency keys.
func (b *Bundle) MustPartitions(t testing.TB) []string {
	t.Helper()
	return strings.Fields(Ask[string](t, b.Watch, `SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_class
		WHERE relkind = 'r' AND relname ~ '^(pushes|sends|idempotency)_\d{8}$'`))
}

// Monday returns the beginning of a week, a number of weeks after this one.
func Monday(weeks int) time.Time {
	return Began.Truncate(Week).Add(time.Duration(weeks) * Week) // the zero time is a Monday
}

// At books a push for a time.
func (b *Bundle) At(t testing.TB, st *store.Store, recipient string, At time.Time, policy quota.Policy) booking.Decision {
	t.Helper()
	return MustBook(t, st, policy, Draft(b.TenantID, recipient, At.Sub(Began)))
}

const Week = 7 * 24 * time.Hour
