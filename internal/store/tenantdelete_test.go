package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/accounts"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// tenantRowsSQL gives a tenant, $1, a row in each table that has rows of tenants, besides its pushes.
var tenantRowsSQL = []string{
	`INSERT INTO users (id, tenant_id, email, role) VALUES (gen_random_uuid(), $1, 'ada@x', 'admin')`,
	`INSERT INTO sessions (token_hash, id, user_id, data, address, user_agent, expires_at)
		SELECT sha256(tenant_id::text::bytea), gen_random_uuid(), id, '', '', '', now() + interval '1 day' FROM users WHERE tenant_id = $1`,
	`WITH k AS (INSERT INTO api_keys (id, tenant_id, hash, scopes) VALUES (gen_random_uuid(), $1, sha256(gen_random_uuid()::text::bytea), '{}') RETURNING id)
		INSERT INTO api_keys (id, tenant_id, hash, scopes, successor) SELECT gen_random_uuid(), $1, sha256(gen_random_uuid()::text::bytea), '{}', id FROM k`,
	`WITH w AS (INSERT INTO webhooks (id, tenant_id, url, events, secret) VALUES (gen_random_uuid(), $1, 'https://x', '{}', 's') RETURNING id)
		INSERT INTO webhook_deliveries (webhook_id, tenant_id, event, payload) SELECT id, $1, 'test', '{}' FROM w`,
	`INSERT INTO webhook_deliveries (webhook_id, tenant_id, event, payload) VALUES (gen_random_uuid(), $1, 'test', '{}')`,
	`WITH s AS (INSERT INTO schedules (id, tenant_id, name, cron, time_zone, push, catch_up, paused, began_at, done_at, next_at, created_at, updated_at)
			VALUES (gen_random_uuid(), $1, '', '@daily', 'UTC', '{}', 'skip', false, now(), now(), now(), now(), now()) RETURNING id)
		INSERT INTO schedule_runs (schedule_id, at, tenant_id) SELECT id, now(), $1 FROM s`,
	`WITH a AS (SELECT gen_random_uuid() AS id, gen_random_uuid() AS audience), c AS (
			INSERT INTO campaigns (id, tenant_id, name, channel, message, status, audience_id, lease_until) SELECT id, $1, '', 'push', '{}', 'starting', audience, now() FROM a)
		INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line) SELECT 1, audience, 1, 'r', $1, id, 1 FROM a`,
	`WITH u AS (INSERT INTO campaign_uploads (id, tenant_id, campaign_id, alive_until) VALUES (gen_random_uuid(), $1, gen_random_uuid(), now()) RETURNING id)
		INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line) SELECT 1, id, 1, 'r', $1, id, 1 FROM u`,
	`INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line) VALUES (1, gen_random_uuid(), 1, 'orphan', $1, gen_random_uuid(), 1)`,
	`WITH b AS (INSERT INTO bulk_changes (id, tenant_id, action, actor) VALUES (gen_random_uuid(), $1, 'cancel', 'system') RETURNING id)
		INSERT INTO bulk_change_pushes (change_id, push_id, recipient_key, send_at) SELECT id, gen_random_uuid(), 1, now() FROM b`,
	`INSERT INTO policies (tenant_id, version, document) VALUES ($1, 1, '{"rules": []}')`,
	`INSERT INTO pauses (id, tenant_id, scope) VALUES (gen_random_uuid(), $1, 'all')`,
	`INSERT INTO policy_operations (id, tenant_id, version, apply) VALUES (gen_random_uuid(), $1, 1, 'cancel')`,
	`INSERT INTO policy_shadows (tenant_id, minute, rule, category, would_refuse) VALUES ($1, now(), '', '', 1)`,
	`INSERT INTO recipients (shard, tenant_id, recipient_key, recipient) VALUES (1, $1, 1, 'r')`,
	`INSERT INTO suppressions (tenant_id, channel, address, reason, address_key) VALUES ($1, 'log', 'x', 'stop', 1)`,
	`INSERT INTO channel_outcomes (tenant_id, channel, minute, worker, attempts, rejected, failed) VALUES ($1, 'log', now(), gen_random_uuid(), 20, 20, 0)`,
	`INSERT INTO unhealthy_channels (tenant_id, channel, since, seen_at) VALUES ($1, 'log', now(), now())`,
	`INSERT INTO channel_views (worker, channel, tenant_id, state, seen_at) VALUES (gen_random_uuid(), 'log', $1, 'paused', now())`,
	`INSERT INTO tenant_channels (id, tenant_id, name, type, settings, secret, secret_times, version) VALUES (gen_random_uuid(), $1, 'sms', 'sms', '{}', '', '{}', 1)`,
	`INSERT INTO stat_deltas (tenant_id, shard, what, hour, channel, category, level, n) VALUES ($1, 1, 'sent', now(), '', '', 1, 1)`,
	`INSERT INTO stats (tenant_id, step, of, at, key) VALUES ($1, 'hour', 'total', now(), '')`,
	`INSERT INTO ahead (tenant_id, hour, channel, category, campaign_id, n) VALUES ($1, now(), '', '', $1, 1)`,
	`INSERT INTO recounts (tenant_id, at) VALUES ($1, now())`,
	`INSERT INTO audit_findings (tenant_id, began_at, check_name, violations, pushes) VALUES ($1, now(), '', 1, '{}')`,
	`INSERT INTO audit_log (tenant_id, actor, action, target, difference) VALUES ($1, 'system', 'x.y', '', '{}')`,
	`INSERT INTO idempotency (idempotency_id, member, push_id, tenant_id, hash, send_at, created_at) VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), $1, '', now(), now())`,
}

// rowsOf counts the rows of a tenant in each table that has rows of tenants.
func (b *bundle) rowsOf(t *testing.T, tenant uuid.UUID) map[string]int {
	t.Helper()
	counts := map[string]int{
		"sessions":           storetest.Ask[int](t, b.DB, `SELECT count(*) FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.tenant_id = $1`, tenant),
		"bulk_change_pushes": storetest.Ask[int](t, b.DB, `SELECT count(*) FROM bulk_change_pushes p JOIN bulk_changes b ON b.id = p.change_id WHERE b.tenant_id = $1`, tenant),
	}
	for _, table := range storetest.Ask[[]string](t, b.DB, `SELECT array_agg(c.relname::text ORDER BY 1) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace`) {
		counts[table] = storetest.Ask[int](t, b.DB, `SELECT count(*) FROM `+table+` WHERE tenant_id = $1`, tenant)
	}
	return counts
}

// TestDeletion checks that all rows of the tenant are deleted, even if the deletion is interrupted and restarted, and
// that no row of another tenant is.
func TestDeletion(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	other := uuid.New()
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'other')`, other)
	under := b.Claimed(t, b.Booked(t, "under way", 0))
	for _, recipient := range []string{"waiting", "later"} {
		b.Booked(t, recipient, time.Hour)
	}
	b.MustFinish(t, b.Claimed(t, b.Booked(t, "sent", 0)), storetest.Sent)
	storetest.MustBook(t, b.Store, nil, storetest.Draft(other, "waiting", time.Hour))
	for _, sql := range tenantRowsSQL {
		b.Exec(t, sql, b.TenantID)
		b.Exec(t, sql, other)
	}
	for table, n := range b.rowsOf(t, b.TenantID) {
		if n == 0 {
			t.Fatalf("the test gives the tenant no row in %s", table)
		}
	}
	before := b.rowsOf(t, other)
	for range 2 { // it may be begun twice
		if id, err := b.BeginDeletion(t.Context(), b.TenantID.String()); err != nil || id != b.TenantID {
			t.Fatal(id, err)
		}
	}

	ctx, interrupt := context.WithCancel(t.Context())
	if _, err := b.ContinueDeletion(ctx, b.TenantID, func(int64) { interrupt() }); err == nil {
		t.Error("an interrupted deletion returned no error")
	}
	goOn := func() store.DeletionLeft {
		left, err := b.ContinueDeletion(t.Context(), b.TenantID, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	b.Exec(t, `UPDATE tenants SET deleting_at = deleting_at - interval '1 hour' WHERE id = $1`, b.TenantID)
	if left := goOn(); left.Ended || left.UnderWay != 1 {
		t.Errorf("beside an attempt: %+v", left)
	}
	b.MustFinish(t, under, storetest.Sent)
	if left := goOn(); !left.Ended {
		t.Errorf("%+v", left)
	}
	for table, n := range b.rowsOf(t, b.TenantID) {
		if n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
	for table, n := range b.rowsOf(t, other) {
		if n != before[table] {
			t.Errorf("the other tenant had %d rows in %s, and has %d", before[table], table, n)
		}
	}
	if all, err := b.Tenants(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestDeletion_Begun checks that from the first step on nothing is accepted or sent for the tenant, even by processes
// that knew it before.
func TestDeletion_Begun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.TenantID.String()
	_, secret, err := b.CreateKey(t.Context(), apikey.NewKey{Tenant: b.TenantID, Scopes: push.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	due := b.Booked(t, "anna", 0)
	if _, err := b.BeginDeletion(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Unwanted || c.Push.ID != due.ID {
		t.Errorf("a push is claimed: %+v", c)
	}
	for _, recipients := range [][]string{{"anna"}, {"bea", "cy"}} {
		var drafts []booking.Draft
		for _, r := range recipients {
			drafts = append(drafts, storetest.Draft(b.TenantID, r, time.Hour))
		}
		made, err := b.Book(t.Context(), booking.Order{Drafts: drafts})
		if err != nil || slices.ContainsFunc(made, func(d booking.Decision) bool { return d.Outcome != booking.OptedOut }) {
			t.Errorf("%+v, %v", made, err)
		}
	}
	if _, err := b.Key(t.Context(), accounts.HashKey(secret)); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("the key is accepted: %v", err)
	}
	if _, err := b.Tenant(t.Context(), name); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("the tenant is found: %v", err)
	}
	if _, _, err := b.CreateTenant(t.Context(), name); !errors.Is(err, accounts.ErrDeleting) {
		t.Errorf("the tenant is made again: %v", err)
	}
	if left, err := b.ContinueDeletion(t.Context(), b.TenantID, func(int64) {}); left.Ended || left.Rest <= 0 || err != nil {
		t.Errorf("the deletion ended at once: %+v, %v", left, err)
	}
}

// TestRenameTenant checks that the new name finds the tenant, and that a name that is taken changes nothing.
func TestRenameTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	to := uuid.NewString()
	if err := b.RenameTenant(t.Context(), b.TenantID, to); err != nil {
		t.Fatal(err)
	}
	if id, err := b.Tenant(t.Context(), to); err != nil || id != b.TenantID {
		t.Errorf("%s, %v", id, err)
	}
	if _, _, err := b.CreateTenant(t.Context(), b.TenantID.String()); err != nil {
		t.Fatal(err)
	}
	if err := b.RenameTenant(t.Context(), b.TenantID, b.TenantID.String()); !errors.Is(err, accounts.ErrNameTaken) {
		t.Errorf("%v", err)
	}
	if err := b.RenameTenant(t.Context(), uuid.New(), "x"); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.rename'`, b.TenantID); n != 1 {
		t.Errorf("%d entries", n)
	}
}
