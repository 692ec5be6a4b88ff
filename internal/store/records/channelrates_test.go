package records_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
)

// TestChannelRates_Own checks that all channels of tenants are one, whatever their names, and that a tenant counts once as rejecting.
func TestChannelRates_Own(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	other, _, err := b.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.CountOutcomes(t.Context(), uuid.New(), []channelhealth.Outcomes{
		{Tenant: b.TenantID, Channel: "*a", Attempts: 100, Rejected: 100}, {Tenant: b.TenantID, Channel: "*b", Attempts: 40, Rejected: 20},
		{Tenant: other, Channel: "*a", Attempts: 60}, {Tenant: other, Channel: "sms", Attempts: 30, Rejected: 30}, {Tenant: b.TenantID, Channel: "sms", Attempts: 30},
	}); err != nil {
		t.Fatal(err)
	}
	rates, err := b.ChannelRates(t.Context())
	want := map[string]channelhealth.Rates{channelhealth.OwnChannel(""): {Attempts: 200, Rejected: 120, Tenants: 1}, "sms": {Attempts: 60, Rejected: 30, Tenants: 1}}
	if err != nil || len(rates) != 2 || rates["*"] != want["*"] || rates["sms"] != want["sms"] {
		t.Errorf("%+v, %v, want %+v", rates, err, want)
	}
}
