package recipients_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestDescriptions_ByAddress checks that a search by an address reads the recipients that have it, not all of the tenant's.
func TestDescriptions_ByAddress(t *testing.T) {
	t.Parallel()
	b := storetest.SetupNew(t)
	b.ForgeMany(t, `INSERT INTO recipients (shard, tenant_id, recipient_key, recipient, addresses)
		SELECT i & 255, $1, i, 'r' || i, jsonb_build_object('mail', 'R' || i || '@example.com') FROM generate_series(1, 3000) i`, b.TenantID)
	b.Exec(t, `VACUUM ANALYZE recipients`)
	n := b.RowsRead(t, store.Config{}, func() {
		found, more, err := b.Descriptions(t.Context(), b.TenantID, booking.DescriptionFilter{Address: "r2001@EXAMPLE.com"}, "", 10)
		if err != nil || more || len(found) != 1 || found[0].Recipient != "r2001" {
			t.Errorf("%+v, %v, %v", found, more, err)
		}
	})
	if n > 100 {
		t.Errorf("%d rows were read", n)
	}
}
