package auditlogs_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/webhook"
)

// acting returns a context with a user as its actor, and that user.
func acting(ctx context.Context) (context.Context, push.Actor) {
	user := push.Actor{Type: push.ActorUser, ID: uuid.New()}
	return push.WithActor(ctx, user), user
}

// TestAuditLog_CommitUnknown checks that a change that is repeated after the reply to its commit was lost has one
// entry.
func TestAuditLog_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	ctx, user := acting(t.Context())
	key, _, err := b.CreateKey(ctx, apikey.NewKey{Tenant: b.TenantID, Scopes: push.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	canceled, moved := b.Booked(t, "anna", time.Hour), b.Booked(t, "bert", time.Hour)
	change := moved
	change.SendAt, change.RequestedSendAt = moved.SendAt.Add(time.Hour), moved.SendAt.Add(time.Hour)
	who := quota.Recipient{Tenant: b.TenantID, ID: "carl"}
	lost := 0
	for _, step := range []struct {
		action auditlog.Action
		lose   string
		do     func() error
	}{
		{auditlog.PushCancel, "", func() error { _, err := b.Cancel(ctx, b.TenantID, canceled.ID); return err }},
		{auditlog.PushMove, "COMMIT", func() error {
			_, err := b.Reschedule(ctx, booking.Order{Drafts: []booking.Draft{{Push: change}}, Policy: storetest.ThreeRules, Now: time.Now()})
			return err
		}},
		{auditlog.RecipientPut, "COMMIT", func() error {
			_, err := b.Describe(ctx, b.TenantID, []booking.Description{{Recipient: who.ID, TimeZone: "Asia/Tokyo", Log: true}})
			return err
		}},
		{auditlog.KeyRotate, "COMMIT", func() error {
			_, _, err := b.RotateKey(ctx, &push.Caller{Tenant: b.TenantID, Scopes: push.Scopes}, key.ID, time.Hour, 0)
			return err
		}},
		{auditlog.WebhookCreate, "COMMIT", func() error {
			_, err := b.CreateWebhook(ctx, webhook.Webhook{ID: uuid.New(), Tenant: b.TenantID, URL: "https://example.com", Events: []webhook.Event{webhook.EventTest}}, "s", 5)
			return err
		}},
		{auditlog.TenantCap, "COMMIT", func() error {
			_, err := b.CapTenant(ctx, storetest.Ask[string](t, b.Watch, `SELECT name FROM tenants WHERE id = $1`, b.TenantID), accounts.CapChange{PendingPushes: &accounts.NewCap{Value: new(7)}})
			return err
		}},
		{auditlog.RecipientErase, "COMMIT", func() error { _, err := b.Erase(ctx, who); return err }},
	} {
		if step.lose != "" {
			w.LoseNext(step.lose)
			lost++
		}
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.action, err)
		}
		w.WantLost(t, lost)
		found := b.Entries(t, auditlog.Filter{Action: step.action})
		if len(found) != 1 || found[0].Actor != user {
			t.Errorf("%s: %+v", step.action, found)
		}
	}
}

// TestAuditLog_Tool checks that the log of a tenant has the changes that the operator's tool made.
func TestAuditLog_Tool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, _, err := b.CreateKey(t.Context(), apikey.NewKey{Tenant: b.TenantID, Scopes: push.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := b.RotateKey(t.Context(), nil, key.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if _, err := b.RevokeKey(t.Context(), nil, next.ID); err != nil {
			t.Fatal(err)
		}
	}
	var actions []auditlog.Action
	for _, e := range b.Entries(t, auditlog.Filter{ActorType: push.ActorSystem}) {
		actions = append(actions, e.Action)
	}
	if want := []auditlog.Action{auditlog.KeyRevoke, auditlog.KeyRotate, auditlog.KeyCreate}; !slices.Equal(actions, want) {
		t.Errorf("%v, want %v", actions, want)
	}
}

// TestAuditLog_NoPartition checks that a change succeeds although no partition for its entry was made ahead.
func TestAuditLog_NoPartition(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	key, _, err := b.CreateKey(t.Context(), apikey.NewKey{Tenant: b.TenantID, Scopes: push.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	p := b.Booked(t, "anna", time.Hour)
	for name, change := range map[string]func() error{
		"once": func() error {
			_, err := b.RevokeKey(t.Context(), &push.Caller{Tenant: b.TenantID, Scopes: push.Scopes}, key.ID)
			return err
		},
		"cancel": func() error { _, err := b.Cancel(t.Context(), b.TenantID, p.ID); return err },
	} {
		b.Exec(t, `DROP TABLE `+storetest.WeekOf("audit_log", 0))
		if err := change(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found := b.Entries(t, auditlog.Filter{}); len(found) != 1 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestDropPartitions_AuditLog checks that the audit log is dropped by week when its retention ends, and never if it is
// kept for ever.
func TestDropPartitions_AuditLog(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Exec(t, `SELECT make_partitions('audit_log', now() - interval '500 days', now())`)
	forever, err := b.DropPartitions(t.Context(), booking.Kept{})
	if err != nil || slices.Contains(forever, storetest.WeekOf("audit_log", 450*storetest.Day)) {
		t.Errorf("%v, %v", forever, err)
	}
	dropped, err := b.DropPartitions(t.Context(), booking.Kept{Log: 400 * storetest.Day})
	if err != nil || !slices.Contains(dropped, storetest.WeekOf("audit_log", 407*storetest.Day)) || slices.Contains(dropped, storetest.WeekOf("audit_log", 399*storetest.Day)) {
		t.Errorf("%v, %v", dropped, err)
	}
}

// TestErase_OnlyInLog checks that a recipient that is in the audit log only is erased there, too.
func TestErase_OnlyInLog(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Exec(t, `INSERT INTO audit_log (tenant_id, actor, action, target, difference) VALUES ($1, 'system', 'recipient.put', 'anna', '{"time_zone": {"to": "Asia/Tokyo"}}')`, b.TenantID)
	e, err := b.Erase(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"})
	if err != nil || e.Rows != 0 || e.Pushes != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if left := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM audit_log WHERE target = 'anna' OR difference <> '{}'`); left != 0 {
		t.Errorf("%d entries name the recipient", left)
	}
}
