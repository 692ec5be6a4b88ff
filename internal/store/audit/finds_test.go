package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// corruptions corrupt a clean database by hand. Each names the one check that finds it. $1 is the id of the push in
// that state; "ahead" is the second push of a recipient, an hour behind the first.
var corruptions = []struct {
	check  string
	status push.Status
	sql    string
}{
	{"promised-window", "ahead", `UPDATE pushes SET send_at = send_at - interval '59 minutes 1 second', next_at = next_at - interval '59 minutes 1 second' WHERE id = $1`},
	{"actual-window", push.Sent, `INSERT INTO sends SELECT push_id, 2, tenant_id, recipient_key, recipient, channel, ended_at + interval '59 seconds', ended_at + interval '2 minutes', NULL, ended_at + interval '60 seconds', 'delivered', '', '' FROM sends WHERE push_id = $1; UPDATE sends SET lease_until = ended_at WHERE push_id = $1 AND attempt = 1; UPDATE pushes SET attempts = 2, updated_at = updated_at + interval '1 hour' WHERE id = $1`},
	{"quiet-hours", "ahead", `INSERT INTO policies (tenant_id, version, at, document) SELECT tenant_id, 1, now() - interval '2 hours', json_build_object('quiet_hours', json_build_array(json_build_object('name', 'x', 'from', to_char(send_at AT TIME ZONE 'UTC', 'HH24:MI'), 'until', to_char((send_at + interval '1 minute') AT TIME ZONE 'UTC', 'HH24:MI')))) FROM pushes WHERE id = $1; UPDATE tenants SET policy_version = 1 FROM pushes WHERE pushes.id = $1 AND tenants.id = tenant_id`},
	{"opted-out", "keyed", `INSERT INTO recipients (shard, tenant_id, recipient_key, recipient, opt_out_all, updated_at) SELECT recipient_key & 255, tenant_id, recipient_key, recipient, true, now() - interval '2 hours' FROM pushes WHERE id = $1; UPDATE tenants SET described = true FROM pushes WHERE pushes.id = $1 AND tenants.id = tenant_id`},
	{"suppressed", push.Sent, `INSERT INTO suppressions (tenant_id, channel, address, reason, address_key, at) SELECT tenant_id, channel, 'x', 'stop', 1, now() - interval '2 hours' FROM sends WHERE push_id = $1; UPDATE sends SET address_key = 1 WHERE push_id = $1; UPDATE tenants SET suppresses = true`},
	{"overlap", push.Failed, `INSERT INTO sends SELECT push_id, 2, tenant_id, recipient_key, recipient, channel, ended_at - interval '1 microsecond', lease_until, NULL, ended_at, outcome, '', '' FROM sends WHERE push_id = $1; UPDATE pushes SET attempts = 2, updated_at = updated_at + interval '1 second' WHERE id = $1`},
	{"overdue", push.Scheduled, `UPDATE pushes SET send_at = send_at - interval '1 hour', requested_send_at = send_at - interval '1 hour', next_at = now() - interval '301 seconds' WHERE id = $1`},
	{"overdue", push.Scheduled, `UPDATE pushes SET expires_at = now() - interval '301 seconds', next_at = now() + interval '1 hour' WHERE id = $1`},
	{"open-attempt", push.Failed, `UPDATE sends SET ended_at = NULL, outcome = NULL WHERE push_id = $1`},
	{"open-attempt", push.Scheduled, `UPDATE sends SET ended_at = NULL, outcome = NULL WHERE push_id = $1; UPDATE pushes SET possibly_delivered = false WHERE id = $1`},
	{"open-attempt", push.Sending, `UPDATE live SET attempts = 2 WHERE push_id = $1`},
	{"not-live", push.Scheduled, `DELETE FROM live WHERE push_id = $1`},
	{"not-live", "ahead", `DELETE FROM live WHERE push_id = $1`},
	{"not-live", "ahead", `UPDATE live SET next_at = next_at + interval '1 second' WHERE push_id = $1`},
	{"not-live", "ahead", `UPDATE live SET send_at = send_at + interval '1 second' WHERE push_id = $1`},
	{"not-live", "ahead", `UPDATE live SET expires_at = expires_at + interval '1 second' WHERE push_id = $1`},
	{"not-live", "ahead", `UPDATE live SET plan = plan + 1 WHERE push_id = $1`},
	{"not-live", "ahead", `UPDATE live SET channel = 'x' WHERE push_id = $1`},
	{"not-live", push.Canceled, `INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, attempts, phase, rank, push_id, tenant_id, channel, shard) SELECT recipient_key, send_at, now(), expires_at, plan, attempts, 2, 2, id, tenant_id, channel, recipient_key & 255 FROM pushes WHERE id = $1`},
	{"attempts", push.Failed, `UPDATE pushes SET attempts = 2 WHERE id = $1`},
	{"attempts", push.Canceled, `UPDATE pushes SET attempts = 1 WHERE id = $1`},
	{"attempts", push.Expired, `INSERT INTO sends SELECT $1::uuid, 2, tenant_id, recipient_key, recipient, channel, send_at, send_at + interval '1 minute', NULL, send_at, 'refused', '', '' FROM pushes WHERE id = $1; UPDATE pushes SET attempts = 1 WHERE id = $1`},
	{"outcome", push.Sent, `UPDATE sends SET outcome = 'refused', handed_at = NULL WHERE push_id = $1`},
	{"outcome", push.Failed, `DELETE FROM sends WHERE push_id = $1; UPDATE pushes SET attempts = 0 WHERE id = $1`},
	{"delivered-again", push.Sent, `INSERT INTO sends SELECT push_id, 2, tenant_id, recipient_key, recipient, channel, ended_at, lease_until, NULL, ended_at, 'refused', '', '' FROM sends WHERE push_id = $1; UPDATE pushes SET attempts = 2, updated_at = updated_at + interval '1 second' WHERE id = $1`},
	{"delivered-again", push.Scheduled, `UPDATE sends SET outcome = 'delivered' WHERE push_id = $1`},
	{"possibly-delivered", push.Scheduled, `UPDATE pushes SET possibly_delivered = false WHERE id = $1`},
	{"possibly-delivered", push.Canceled, `UPDATE pushes SET possibly_delivered = true WHERE id = $1`},
	{"possibly-delivered", push.Failed, `UPDATE sends SET outcome = 'delivered' WHERE push_id = $1`},
	{"after-end", push.Failed, `UPDATE pushes SET updated_at = s.started_at - interval '1 microsecond' FROM sends s WHERE id = $1 AND push_id = id`},
	{"after-end", push.Sent, `UPDATE pushes SET status = 'canceled', possibly_delivered = true, updated_at = s.started_at + interval '1 second' FROM sends s WHERE id = $1 AND push_id = id; UPDATE sends SET handed_at = started_at + interval '2 seconds', ended_at = lease_until WHERE push_id = $1`},
	{"early", push.Sent, `UPDATE pushes SET send_at = date_trunc('second', s.started_at) + interval '1 second' FROM sends s WHERE id = $1 AND push_id = id`},
	{"early", push.Failed, `UPDATE pushes SET send_at = date_trunc('second', s.started_at) + interval '1 second' FROM sends s WHERE id = $1 AND push_id = id`},
	{"early", push.Sending, `UPDATE pushes SET send_at = date_trunc('second', s.started_at) + interval '1 second' FROM live s WHERE id = $1 AND push_id = id`},
	{"early", push.Scheduled, `UPDATE pushes SET send_at = date_trunc('second', next_at) + interval '1 second' WHERE id = $1`},
	{"too-late", push.Sent, `UPDATE pushes SET expires_at = s.started_at FROM sends s WHERE id = $1 AND push_id = id`},
	{"too-late", push.Failed, `UPDATE pushes SET expires_at = s.started_at FROM sends s WHERE id = $1 AND push_id = id`},
	{"expired-early", push.Expired, `UPDATE pushes SET expires_at = updated_at + interval '1 microsecond' WHERE id = $1`},
	{"no-reason", push.Failed, `UPDATE pushes SET last_error = '' WHERE id = $1`},
	{"no-reason", push.Expired, `UPDATE pushes SET last_error = '' WHERE id = $1`},
	{"times", push.Sent, `UPDATE sends SET handed_at = started_at - interval '1 microsecond' WHERE push_id = $1`},
	{"times", push.Failed, `UPDATE sends SET handed_at = started_at WHERE push_id = $1`},
	{"times", push.Failed, `UPDATE sends SET lease_until = started_at WHERE push_id = $1`},
	{"times", push.Canceled, `UPDATE pushes SET updated_at = created_at - interval '1 second' WHERE id = $1`},
	{"times", push.Scheduled, `UPDATE pushes SET expires_at = 'infinity' WHERE id = $1`},
	{"times", push.Scheduled, `UPDATE pushes SET next_at = 'infinity' WHERE id = $1`},
	{"times", push.Sending, `UPDATE live SET next_at = 'infinity' WHERE push_id = $1`},
	{"lost", push.Sending, `UPDATE live SET started_at = now() - interval '401 seconds', next_at = now() - interval '301 seconds' WHERE push_id = $1; UPDATE pushes SET send_at = send_at - interval '1 hour', requested_send_at = send_at - interval '1 hour' WHERE id = $1`},
	{"delivered-again", push.Sent, `UPDATE pushes SET status = 'failed', possibly_delivered = true, last_error = 'x' WHERE id = $1`},
	{"delivered-again", push.Sent, `UPDATE pushes SET status = 'canceled', possibly_delivered = true WHERE id = $1`},
	{"delivered-again", push.Sent, `UPDATE pushes SET status = 'expired', possibly_delivered = true, last_error = 'x', expires_at = updated_at WHERE id = $1`},
	{"times", push.Failed, `UPDATE sends SET started_at = now() + interval '330 seconds', ended_at = now() + interval '331 seconds', lease_until = now() + interval '400 seconds' WHERE push_id = $1; UPDATE pushes SET updated_at = now() + interval '400 seconds' WHERE id = $1`},
	{"orphan", push.Sent, `DELETE FROM pushes WHERE id = $1`},
	{"orphan", push.Sent, `UPDATE sends SET tenant_id = t.id FROM tenants t WHERE push_id = $1 AND t.id <> tenant_id`},
	{"orphan", push.Sent, `UPDATE sends SET recipient = 'x' WHERE push_id = $1`},
	{"orphan", push.Sent, `UPDATE sends SET recipient_key = recipient_key + 1 WHERE push_id = $1`},
	{"orphan", push.Sent, `UPDATE sends SET channel = 'x' WHERE push_id = $1`},
	{"recipient-key", push.Canceled, `UPDATE pushes SET recipient_key = recipient_key + 1 WHERE id = $1`},
	{"unknown-tenant", push.Canceled, `UPDATE pushes SET tenant_id = '0b0c9c36-4b1d-4e3c-8a30-000000000001', recipient_key = ('x' || encode(substr(sha256(uuid_send('0b0c9c36-4b1d-4e3c-8a30-000000000001') || convert_to(recipient, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint WHERE id = $1`},
	{"idempotency", push.Canceled, `UPDATE pushes SET idempotency_id = o.idempotency_id, idempotency_hash = 'other' FROM pushes o WHERE pushes.id = $1 AND o.recipient = 'keyed'`},
	{"idempotency", push.Canceled, `UPDATE pushes SET idempotency_id = o.idempotency_id, idempotency_hash = o.idempotency_hash, tenant_id = t.id, recipient_key = ('x' || encode(substr(sha256(uuid_send(t.id) || convert_to(pushes.recipient, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint FROM pushes o, tenants t WHERE pushes.id = $1 AND o.recipient = 'keyed' AND t.name = 'another'`},
	{"idempotency", push.Canceled, `UPDATE pushes SET idempotency_id = o.idempotency_id FROM pushes o WHERE pushes.id = $1 AND o.recipient = 'keyed'`},
	{"idempotency", push.Canceled, `UPDATE pushes SET idempotency_id = o.idempotency_id, idempotency_hash = o.idempotency_hash FROM pushes o WHERE pushes.id = $1 AND o.recipient = 'keyed'`},
	{"idempotency", push.Canceled, `UPDATE pushes SET idempotency_id = k.idempotency_id, idempotency_hash = k.hash FROM idempotency k WHERE id = $1; INSERT INTO idempotency SELECT idempotency_id, member, $1::uuid, tenant_id, hash, send_at, created_at + interval '29 days' FROM idempotency`},
	{"idempotency", push.Canceled, `UPDATE pushes SET idempotency_id = k.idempotency_id, idempotency_hash = 'other' FROM idempotency k WHERE id = $1; INSERT INTO idempotency SELECT idempotency_id, gen_random_uuid(), $1::uuid, tenant_id, 'other', send_at, created_at + interval '29 days' FROM idempotency`},
	{"idempotency", "keyed", `DELETE FROM idempotency WHERE push_id = $1`},
	{"idempotency", "keyed", `UPDATE idempotency SET hash = 'other' WHERE push_id = $1`},
	{"idempotency", "keyed", `UPDATE idempotency SET tenant_id = gen_random_uuid() WHERE push_id = $1`},
}

// TestAudit_FindsCorruption checks that the audit finds every kind of corruption by its check, and names the push.
func TestAudit_FindsCorruption(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	if _, _, err := b.CreateTenant(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	b.Exec(t, `SELECT make_partitions('idempotency', now(), now() + interval '30 days')`)
	b.Booked(t, "ahead", time.Hour)
	pushes := map[push.Status]push.Push{
		"ahead": b.Booked(t, "ahead", 2*time.Hour),
		"keyed": storetest.MustBook(t, b.Store, nil, storetest.MustKeyed(b.TenantID, "keyed", "k", "request", time.Hour)).Push,
	}
	for _, status := range push.Statuses {
		pushes[status] = b.InStatus(t, string(status), status)
	}
	// Waiting and running pushes keep their state for longer than the test takes. Otherwise they become overdue, or
	// lost.
	b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, pushes[push.Scheduled].ID)
	b.Exec(t, `UPDATE live SET next_at = clock_timestamp() + interval '1 hour' WHERE push_id = $1`, pushes[push.Sending].ID)
	b.MustAudit(t, storetest.PerMinute)
	found := map[string]bool{}
	begin := func(since time.Time) *audit.Pass {
		return b.AuditSince(storetest.PerMinute, booking.Kept{}, since)
	}
	ways := map[string]func() []audit.Finding{"everything": func() []audit.Finding { return storetest.FinishAudit(t, begin(time.Time{})) }}
	if !testing.Short() {
		ways["an hour"] = func() []audit.Finding { return storetest.FinishAudit(t, begin(storetest.Began.Add(-time.Hour))) }
		ways["chunks of one"] = func() []audit.Finding { return b.auditInChunks(t, storetest.PerMinute, 1) }
		ways["chunks of two"] = func() []audit.Finding { return b.auditInChunks(t, storetest.PerMinute, 2) }
		ways["the workers"] = func() []audit.Finding {
			b.forgetAudits(t)
			return storetest.FinishAudit(t, b.beginAudit(t, storetest.PerMinute, 1000))
		}
	}
	b.Exec(t, `CREATE TABLE pushes_kept AS TABLE pushes; CREATE TABLE sends_kept AS TABLE sends; CREATE TABLE live_kept AS TABLE live; CREATE TABLE keyed_kept AS TABLE idempotency`)
	for i, row := range corruptions {
		found[row.check] = true
		t.Run(fmt.Sprint(i, " ", row.check), func(t *testing.T) {
			defer b.Exec(t, `BEGIN; DELETE FROM pushes; DELETE FROM sends; DELETE FROM idempotency; INSERT INTO pushes TABLE pushes_kept; INSERT INTO sends TABLE sends_kept; DELETE FROM live; INSERT INTO live TABLE live_kept; INSERT INTO idempotency TABLE keyed_kept; DELETE FROM policies; DELETE FROM recipients; DELETE FROM suppressions; UPDATE tenants SET policy_version = 0, described = false, suppresses = false; COMMIT`)
			p := pushes[row.status]
			b.Exec(t, strings.ReplaceAll(row.sql, "$1", "'"+p.ID.String()+"'::uuid")) // several statements take no arguments
			for way, audit := range ways {
				findings := audit()
				for _, f := range findings {
					if f.Check != row.check || f.Push != p.ID || f.Tenant == uuid.Nil || f.Recipient == "" || f.Detail == "" {
						t.Errorf("%s: found %+v", way, f)
					}
				}
				if len(findings) != 1 {
					t.Errorf("%s: %d findings", way, len(findings))
				}
			}
		})
	}
	for _, name := range (&store.Store{}).CheckNames() {
		if !found[name] {
			t.Errorf("nothing is corrupted for %s", name)
		}
	}
	if len(found) != len(audit.Checks) {
		t.Errorf("%d checks were tried, and there are %d", len(found), len(audit.Checks))
	}
}
