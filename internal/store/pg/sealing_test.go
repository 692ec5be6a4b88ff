package pg_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/tenantchannel"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

// TestSecrets_OtherProgramsKey checks that a program seals nothing while the other programs of its database have a key that it does
// not have: they could not open it.
func TestSecrets_OtherProgramsKey(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	was, is := seal.NewKey(), seal.NewKey()
	old, both := b.keyed(t, was), b.keyed(t, is, was)
	testenv.Check(t, old.NoteSealKey(t.Context(), false))

	hook := webhook.Webhook{ID: uuid.Must(uuid.NewV7()), Tenant: b.TenantID, URL: "https://example.com/hook", Events: webhook.Events}
	calls := func(st *store.Store) map[string]error {
		_, made := st.CreateWebhook(t.Context(), webhook.Webhook{ID: uuid.Must(uuid.NewV7()), Tenant: b.TenantID, URL: hook.URL, Events: hook.Events}, "whsec_b25l", 100)
		_, rotated := st.RotateWebhookSecret(t.Context(), b.TenantID, hook.ID, "whsec_dHdv", time.Hour)
		_, _, put := st.PutChannel(t.Context(), b.TenantID, "news", func(tenantchannel.Channel) (tenantchannel.Change, error) {
			return tenantchannel.Change{Name: "news", Type: "log", Settings: []byte(`{}`), Max: 20}, nil
		})
		return map[string]error{"new webhook": made, "another secret": rotated, "channel": put}
	}
	_, err := old.CreateWebhook(t.Context(), hook, "whsec_b25l", 100)
	testenv.Check(t, err)
	for what, err := range calls(old) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	testenv.Check(t, both.NoteSealKey(t.Context(), false)) // the rotation begins
	for what, err := range calls(old) {
		if !errors.Is(err, seal.ErrUnknownKey) {
			t.Errorf("%s, with the old key: %v", what, err)
		}
	}
	for what, err := range calls(both) {
		if err != nil {
			t.Errorf("%s, with both keys: %v", what, err)
		}
	}
	if _, unopened := unopened(t, both); unopened > 0 {
		t.Errorf("%d secrets cannot be opened", unopened)
	}
}
