package audit_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

// fillSQL inserts @rows pushes for a tenth as many recipients, nearly all over the last 59 days, and a thousandth for
// tomorrow. Of each twenty, one is canceled, one has failed and one was sent at its second attempt.
const fillSQL = `
	SELECT make_partitions(parent, now() - interval '60 days', now() + interval '2 days') FROM unnest('{pushes, sends}'::text[]) parent;
	INSERT INTO tenants (id, name) SELECT ('00000000-0000-4000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'tenant ' || i FROM generate_series(0, 9) i;
	INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, ttl_ms,
		status, plan, attempts, possibly_delivered, last_error, created_at, updated_at)
	SELECT id, tenant, ('x' || encode(substr(sha256(uuid_send(tenant) || convert_to(recipient, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, recipient,
		'log', '{"title": "hello", "body": "this is a message of a usual length"}', at, at, at, at + interval '1 day', 86400000,
		CASE WHEN ahead THEN 'scheduled' WHEN kind = 1 THEN 'canceled' WHEN kind = 2 THEN 'failed' ELSE 'sent' END, 2,
		CASE WHEN ahead OR kind = 1 THEN 0 WHEN kind IN (2, 3) THEN 2 ELSE 1 END, kind = 3 AND NOT ahead,
		CASE WHEN kind = 2 THEN 'bad' ELSE '' END, at - interval '1 hour', at + interval '10 minutes'
	FROM (
		SELECT i % 20 AS kind, at, at > now() AS ahead, 'recipient ' || r AS recipient,
			(lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(h, 1, 3) || '8' || substr(h, 4, 15))::uuid AS id,
			('00000000-0000-4000-8000-' || lpad(to_hex(r % 10), 12, '0'))::uuid AS tenant
		FROM (SELECT i, md5(i::text) AS h, i::bigint * 7919 % (@rows / 10) AS r,
			date_trunc('second', now() - interval '59 days' + i * interval '59 days' / @rows + CASE WHEN i > @rows * 0.999 THEN interval '1 day' ELSE '0' END) AS at FROM generate_series(1, @rows) i) numbers
	) rows;
	INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, handed_at, ended_at, outcome)
	SELECT id, attempt, tenant_id, recipient_key, recipient, channel, began, began + interval '1 minute',
		CASE WHEN outcome = 'delivered' THEN began + interval '5 ms' END, began + interval '20 ms', outcome
	FROM (
		SELECT p.*, attempt, send_at + interval '3 ms' + (attempt - 1) * interval '3 minutes' AS began,
			CASE WHEN status = 'failed' THEN 'refused' WHEN attempt < attempts THEN 'unknown' ELSE 'delivered' END AS outcome
		FROM pushes p, generate_series(1, attempts) attempt
	) attempts ORDER BY began;
	VACUUM ANALYZE`

// BenchmarkAudit audits three million pushes, or SENDQUOTA_AUDIT_ROWS, with as many attempts. It audits all of them,
// and then as workers do, a day back and a day ahead: first with no hour closed, then with all hours closed that can
// be. Then it does the same where each tenant has rules of its own.
func BenchmarkAudit(b *testing.B) {
	rows := 3_000_000
	if n, err := strconv.Atoi(os.Getenv("SENDQUOTA_AUDIT_ROWS")); err == nil {
		rows = n
	}
	bundle := setupNew(b)
	for _, sql := range strings.Split(strings.ReplaceAll(fillSQL, "@rows", strconv.Itoa(rows)), ";\n") {
		bundle.Exec(b, sql)
	}
	bundle.benchAudits(b, rows)
	bundle.Exec(b, `INSERT INTO policies (tenant_id, version, at, document) SELECT id, 1, '2000-01-01', $1 FROM tenants`, ownRules)
	bundle.Exec(b, `UPDATE tenants SET policy_version = 1`)
	b.Run("by the tenants' own policies", func(b *testing.B) { bundle.benchAudits(b, rows) })
}

// ownRules is threeRules, and two rules with a scope.
const ownRules = `{"rules": [
	{"name": "per-minute", "limit": 1, "window": "1m"}, {"name": "per-hour", "limit": 5, "window": "1h"}, {"name": "per-day", "limit": 10, "window": "24h"},
	{"name": "news", "limit": 3, "per": "week", "zone": "recipient", "categories": ["news"]}, {"name": "log", "limit": 100, "per": "day", "channels": ["log"]}],
	"quiet_hours": [{"name": "night", "from": "22:00", "until": "08:00", "categories": ["news"]}]}`

// benchAudits measures each way to audit a number of pushes.
func (bundle *bundle) benchAudits(b *testing.B, rows int) {
	clean := func(f audit.Finding) { b.Fatalf("%+v", f) }
	carry := func(b *testing.B, p *audit.Pass) (read, chunks int, longest time.Duration) {
		for !p.Over() {
			chunk, _, err := p.Next(b.Context(), clean)
			if err != nil {
				b.Fatal(err)
			}
			read, chunks, longest = read+chunk.Rows, chunks+1, max(longest, chunk.Took)
		}
		return read, chunks, longest
	}
	b.Run("everything", func(b *testing.B) {
		for b.Loop() {
			_, chunks, longest := carry(b, bundle.AuditSince(storetest.ThreeRules, booking.Kept{}, time.Time{}))
			b.Logf("%d chunks, the longest %s", chunks, longest.Round(time.Millisecond))
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e6/float64(rows), "s/1M-pushes")
	})
	for _, c := range []struct {
		name string
		plan booking.AuditPlan
		warm bool
	}{
		{"first pass", booking.AuditPlan{Back: storetest.ThreeRules.Reach() + 30*time.Minute, Ahead: 24 * time.Hour}, false},
		{"later pass", booking.AuditPlan{Back: storetest.ThreeRules.Reach() + 30*time.Minute, Ahead: 24 * time.Hour}, true},
	} {
		c.plan.Policy = storetest.ThreeRules
		b.Run(c.name, func(b *testing.B) {
			pass := func() (read, chunks int, longest time.Duration) {
				p, err := bundle.BeginAudit(b.Context(), uuid.New(), c.plan)
				if err != nil || p == nil {
					b.Fatal(p, err)
				}
				return carry(b, p)
			}
			bundle.forgetAudits(b)
			if c.warm {
				pass()
			}
			for b.Loop() {
				if !c.warm {
					bundle.forgetAudits(b)
				}
				read, chunks, longest := pass()
				b.Logf("%d rows in %d chunks, the longest %s", read, chunks, longest.Round(time.Millisecond))
				b.ReportMetric(float64(read), "rows/op")
			}
		})
	}
}
