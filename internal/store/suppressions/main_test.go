package suppressions_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/suppression"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bundle is a [storetest.Bundle] with helpers for the tests of this package.
type bundle struct{ *storetest.Bundle }

func setup(t testing.TB) *bundle { return &bundle{storetest.Setup(t)} }

// entry returns an entry of the tenant.
func (b *bundle) entry(channel, address string, reason suppression.Reason) suppression.Entry {
	return suppression.Entry{Tenant: b.TenantID, Channel: channel, Address: suppression.Normal(address), Reason: reason}
}

// suppress stores entries, and returns the number of canceled pushes.
func (b *bundle) suppress(t testing.TB, entries ...suppression.Entry) (stored []suppression.Stored, canceled int) {
	t.Helper()
	stored, n, err := b.PutSuppressions(t.Context(), b.TenantID, entries, true)
	if err != nil {
		t.Fatal(err)
	}
	return stored, n.Pushes
}

// describe gives a recipient an address.
func (b *bundle) describe(t testing.TB, recipient, channel, address string) {
	t.Helper()
	_, err := b.Describe(t.Context(), b.TenantID, []booking.Description{{Recipient: recipient, Addresses: map[string]string{channel: address}}})
	if err != nil {
		t.Fatal(err)
	}
}

// books books a push, and returns the decision.
func (b *bundle) books(t testing.TB, d booking.Draft) booking.Decision {
	t.Helper()
	all, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: quota.Policy(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// noTenant is an id that no tenant has.
var noTenant = uuid.MustParse("01900000-0000-7000-8000-000000000000")
