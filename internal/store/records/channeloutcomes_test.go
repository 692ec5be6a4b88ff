package records_test

import (
	"encoding/json"
	"testing"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

// counts adds a worker's outcomes of a tenant through sms.
func (b *bundle) counts(t *testing.T, worker, tenant uuid.UUID, attempts, rejected int) {
	t.Helper()
	testenv.Check(t, b.CountOutcomes(t.Context(), worker, []channelhealth.Outcomes{{Tenant: tenant, Channel: "sms", Attempts: attempts, Rejected: rejected}}))
}

// TestChannelHealth_Rejecting checks that a channel is rejecting for a tenant if more than a fifth of its outcomes over
// all workers were refused permanently in five minutes. The state of a channel that is down is worse.
func TestChannelHealth_Rejecting(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	workers, other := []uuid.UUID{uuid.New(), uuid.New()}, uuid.New()
	wants := func(state channelhealth.State, attempts, rejected int) {
		t.Helper()
		h := b.health(t, b.TenantID).Of("sms")
		if h.State != state || h.Recent.Attempts != attempts || h.Recent.Rejected != rejected {
			t.Errorf("%+v, want %s after %d of %d", h, state, rejected, attempts)
		}
		if h := b.health(t, uuid.New()).Of("sms"); h.State == channelhealth.Rejecting || h.Recent.Attempts != 0 {
			t.Errorf("another tenant's: %+v", h)
		}
	}
	sees := func(state channelhealth.State) {
		t.Helper()
		testenv.Check(t, b.ReplaceChannelViews(t.Context(), workers[0], []channelhealth.View{{Channel: "sms", State: state}}))
	}
	sees(channelhealth.Working)
	b.counts(t, workers[0], b.TenantID, 10, 10)
	b.counts(t, workers[0], b.TenantID, 9, 0)
	b.counts(t, workers[0], other, 100, 0)
	wants(channelhealth.Working, 19, 10) // too few outcomes
	b.counts(t, workers[1], b.TenantID, 1, 0)
	wants(channelhealth.Rejecting, 20, 10)
	b.counts(t, workers[1], b.TenantID, 30, 0)
	wants(channelhealth.Working, 50, 10) // a fifth is not more than a fifth
	b.counts(t, workers[1], b.TenantID, 310, 310)
	wants(channelhealth.Rejecting, 360, 320)
	sees(channelhealth.Paused)
	wants(channelhealth.Rejecting, 360, 320)
	sees(channelhealth.Failing)
	wants(channelhealth.Failing, 360, 320)

	rates, err := b.ChannelRates(t.Context())
	if diff := cmp.Diff(map[string]channelhealth.Rates{"sms": {Attempts: 460, Rejected: 320, Tenants: 1}}, rates); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}

	sees(channelhealth.Working)
	more := []channelhealth.Outcomes{{Tenant: b.TenantID, Channel: "sms", Attempts: 90, Failed: 90}}
	testenv.Check(t, b.CountOutcomes(t.Context(), workers[0], more))
	wants(channelhealth.Rejecting, 450, 320) // a fifth is not more than a fifth
	more[0].Attempts, more[0].Failed = 1, 1
	testenv.Check(t, b.CountOutcomes(t.Context(), workers[0], more))
	wants(channelhealth.Failing, 451, 320)
	b.Exec(t, `UPDATE channel_outcomes SET minute = minute - interval '6 minutes'`)
	wants(channelhealth.Working, 0, 0)
	b.Exec(t, `UPDATE channel_outcomes SET minute = minute - interval '6 minutes'`)
	b.counts(t, workers[0], b.TenantID, 1, 0)
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM channel_outcomes`); n != 1 {
		t.Errorf("%d rows are kept", n)
	}
}

// TestNotifyUnhealthy checks that a tenant's webhooks get one event when a channel becomes unhealthy for it, even with
// several workers, and another one if it was healthy for five minutes in between. Other tenants get no event, nor do
// webhooks for other events.
func TestNotifyUnhealthy(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	worker := uuid.New()
	b.Hook(t, webhook.EventChannelUnhealthy)
	b.Hook(t, webhook.EventSent)
	notified := func() (all []string) {
		t.Helper()
		for range 3 {
			unhealthy, err := b.NotifyUnhealthy(t.Context())
			testenv.Check(t, err)
			for _, u := range unhealthy {
				all = append(all, u.Channel+" "+string(u.State)+" "+map[bool]string{true: "mine", false: "another's"}[u.Tenant == b.TenantID])
			}
		}
		return all
	}
	wants := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, notified()); diff != "" {
			t.Error(diff)
		}
	}
	b.counts(t, worker, b.TenantID, 19, 19)
	wants()
	b.counts(t, worker, b.TenantID, 341, 341)
	wants("sms rejecting mine")
	payload := storetest.Ask[string](t, b.DB, `SELECT payload::text FROM webhook_deliveries`) // one row
	var event struct {
		Type string
		Data map[string]any
	}
	testenv.Check(t, json.Unmarshal([]byte(payload), &event))
	if diff := cmp.Diff(map[string]any{"channel": "sms", "state": "rejecting", "attempts": 360.0, "rejected": 360.0, "failed": 0.0, "window_seconds": 300.0}, event.Data); event.Type != "channel.unhealthy" || diff != "" {
		t.Errorf("%s: %s", payload, diff)
	}

	// It is healthy for four minutes, and then for five.
	b.Exec(t, `UPDATE channel_outcomes SET minute = minute - interval '6 minutes'`)
	b.Exec(t, `UPDATE unhealthy_channels SET seen_at = seen_at - interval '4 minutes'`)
	b.counts(t, worker, b.TenantID, 20, 20)
	wants()
	b.Exec(t, `UPDATE channel_outcomes SET minute = minute - interval '6 minutes'`)
	b.Exec(t, `UPDATE unhealthy_channels SET seen_at = seen_at - interval '5 minutes'`)
	b.counts(t, worker, b.TenantID, 20, 20)
	wants("sms rejecting mine")

	// A channel that is down is unhealthy for the tenants that use it. If it is down for one tenant only,
	// no other tenant gets the event.
	b.counts(t, worker, uuid.New(), 1, 0)
	testenv.Check(t, b.ReplaceChannelViews(t.Context(), worker, []channelhealth.View{{Channel: "sms", Tenant: b.TenantID, State: channelhealth.Failing}}))
	wants()
	testenv.Check(t, b.ReplaceChannelViews(t.Context(), worker, []channelhealth.View{{Channel: "sms", State: channelhealth.Failing}, {Channel: "log", State: channelhealth.Failing}}))
	wants("sms failing another's")
}
