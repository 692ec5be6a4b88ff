package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/audit"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// PerMinute is the policy of the audited databases.
var PerMinute = quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}, {Name: "hour", Limit: 3, Window: time.Hour}}

func (b *Bundle) MustCancel(t testing.TB, p push.Push) {
	t.Helper()
	if _, err := b.Cancel(t.Context(), p.Tenant, p.ID); err != nil {
		t.Fatal(err)
	}
}

// Entries returns the entries of the tenant's audit log, the latest first.
func (b *Bundle) Entries(t *testing.T, f auditlog.Filter) []auditlog.Entry {
	t.Helper()
	page, err := b.AuditLog(t.Context(), b.TenantID, f, auditlog.Position{}, 100)
	if err != nil || page.Next != nil {
		t.Fatal(page.Next, err)
	}
	return page.Entries
}

// FinishAudit runs a pass to its end, and returns its findings.
func FinishAudit(t testing.TB, p *audit.Pass) (all []audit.Finding) {
	t.Helper()
	for !p.Over() {
		c, own, err := p.Next(t.Context(), func(f audit.Finding) { all = append(all, f) })
		if err != nil || !own || c.Skipped != uuid.Nil {
			t.Fatal(c, own, err)
		}
	}
	return all
}

// Adopt gives the tenant a policy of its own, since some time ago; an empty document returns to the file's policy.
func (b *Bundle) Adopt(t testing.TB, ago time.Duration, document string) {
	t.Helper()
	b.Exec(t, `WITH v AS (UPDATE tenants SET policy_version = policy_version + 1 WHERE id = $1 RETURNING policy_version)
		INSERT INTO policies (tenant_id, version, at, document) SELECT $1, policy_version, clock_timestamp() - $2::interval, nullif($3, '')::json FROM v`,
		b.TenantID, ago, document)
}

// MustDescribe sets columns of a recipient's description.
func (b *Bundle) MustDescribe(t testing.TB, recipient, columns string, values ...any) {
	t.Helper()
	b.Exec(t, `UPDATE tenants SET described = true WHERE id = $1`, b.TenantID)
	key := push.RecipientKey(b.TenantID, recipient)
	b.Exec(t, `INSERT INTO recipients (shard, tenant_id, recipient_key, recipient) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, key&255, b.TenantID, key, recipient)
	b.Exec(t, `UPDATE recipients SET `+columns+` WHERE recipient_key = $1`, append([]any{key}, values...)...)
}

// Fill gives a recipient n bookings at a regular interval from a time on.
func (b *Bundle) Fill(t testing.TB, recipient string, n int, from time.Time, every time.Duration) {
	t.Helper()
	b.Exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
		SELECT gen_random_uuid(), $1, $2, $3, 'log', '{}', s, s, s, s + interval '1 day'
		FROM generate_series(0, $4 - 1) i, LATERAL (SELECT $5::timestamptz + i * $6::interval AS s) s`,
		b.TenantID, push.RecipientKey(b.TenantID, recipient), recipient, n, from, every)
}

// MustDue reports whether a push of the recipient key is due. It retries while the store is unavailable.
func (b *Bundle) MustDue(t *testing.T, key int64) bool {
	for {
		due, _, err := b.Due(t.Context(), EveryDue(1000))
		if err == nil {
			for _, w := range due {
				if w.RecipientKey == key {
					return true
				}
			}
			return false
		}
		if !errors.Is(err, push.ErrUnavailable) {
			t.Errorf("due: %v", err)
			return false
		}
	}
}

// Attempted forges an attempt with its beginning and its end some time ago, relative to the transaction's start.
func (b *Bundle) Attempted(t testing.TB, tenant uuid.UUID, recipient string, outcome push.Outcome, began, ended time.Duration) (endedAt time.Time) {
	t.Helper()
	return Ask[time.Time](t, b.DB, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome)
		VALUES ($1, 1, $2, $3, $4, 'log', now() - $5::interval, now(), now() - $6::interval, $7)
		RETURNING ended_at`, uuid.New(), tenant, push.RecipientKey(tenant, recipient), recipient, began, ended, string(outcome))
}

// SentThrough forges a send that ended some time ago.
func (b *Bundle) SentThrough(t testing.TB, recipient, channel, category string, ago time.Duration) (ended time.Time) {
	t.Helper()
	return Ask[time.Time](t, b.DB, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, category, started_at, lease_until, ended_at, outcome)
		VALUES ($1, 1, $2, $3, $4, $5, $6, clock_timestamp() - $7::interval, clock_timestamp(), clock_timestamp() - $7::interval, 'delivered')
		RETURNING ended_at`, uuid.New(), b.TenantID, push.RecipientKey(b.TenantID, recipient), recipient, channel, category, ago)
}

// QuietNow returns a document with quiet hours that began an hour ago or more, and their end, in an hour or more.
func QuietNow(zone string, of *time.Location) (document string, until time.Time) {
	until = time.Now().In(of).Add(2 * time.Hour).Truncate(time.Hour)
	from := until.Add(-4 * time.Hour)
	return fmt.Sprintf(`{"quiet_hours": [{"name": "now", "from": %q, "until": %q, "zone": %q}]}`, from.Format("15:04"), until.Format("15:04"), zone), until
}

// MustKeyed returns a draft under an Idempotency-Key, the only one of its request.
func MustKeyed(tenant uuid.UUID, recipient, key, request string, in time.Duration) booking.Draft {
	d := Draft(tenant, recipient, in)
	d.Push.RequestMember = uuid.NewSHA1(tenant, []byte(key))
	d.Push.IdempotencyID = uuid.NewSHA1(tenant, []byte("key "+key))
	d.Push.IdempotencyHash = []byte(request)
	return d
}

// ListAll reads a list to its end, and returns the pushes and the number of pages.
func (b *Bundle) ListAll(t *testing.T, f push.Filter, limit int) (all []push.Push, pages int) {
	t.Helper()
	for after := (&push.Position{}); after != nil; pages++ {
		page, err := b.List(t.Context(), b.TenantID, f, *after, limit)
		if err != nil || len(page.Pushes) > limit || pages > 1000 {
			t.Fatal(len(page.Pushes), pages, err)
		}
		all, after = append(all, page.Pushes...), page.Next
	}
	return all, pages
}

func Outcomes(decisions []booking.Decision) map[booking.Outcome]int {
	n := map[booking.Outcome]int{}
	for _, v := range decisions {
		n[v.Outcome]++
	}
	return n
}

// NoSends returns a policy that allows no sends.
func NoSends() *policy.Document {
	return &policy.Document{Rules: []policy.Rule{{Name: "never", Limit: new(0), Window: "1m"}}}
}

func (b *Bundle) Move(st *store.Store, p push.Push, to time.Time) error {
	p.SendAt = to
	v, err := st.Reschedule(context.Background(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: nil})
	if err == nil && v.Outcome != booking.Booked {
		err = errors.New("no place")
	}
	return err
}

// RowsRead returns the number of rows that a new store reads for some work, in tables or from indexes. The store has
// four lanes: if each shard is a lane, a statement for every lane reads past the due pushes of all.
func (b *Bundle) RowsRead(t testing.TB, cfg pg.Config, work func()) int {
	t.Helper()
	cfg.Lanes = 4
	return b.Counted(t, cfg, `SELECT coalesce(sum(idx_tup_read), 0) + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables) FROM pg_stat_user_indexes`, work)
}

// Counted returns the growth of a number in Postgres' statistics by the work of a new store.
func (b *Bundle) Counted(t testing.TB, cfg pg.Config, read string, work func()) int {
	t.Helper()
	closed := func() { // its connections report what they did before they are gone
		b.Close()
		Eventually(t, "all connections are gone", func() bool {
			return Ask[int](t, b.DB, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota'`) == 0
		})
	}
	closed()
	const scans = `SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes`
	b.Exec(t, `SELECT pg_stat_force_next_flush()`)
	b.Exec(t, `SELECT pg_stat_reset()`)

	b.Store = OpenURL(t, b.URL, cfg)
	work()
	closed()
	Eventually(t, "what it did is counted", func() bool { return Ask[int](t, b.Watch, scans) > 0 })
	return Ask[int](t, b.Watch, read)
}

// Say stores a tenant's description of one recipient.
func (b *Bundle) Say(t testing.TB, d booking.Description) booking.Described {
	t.Helper()
	all, err := b.Describe(t.Context(), b.TenantID, []booking.Description{d})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// RetryOf returns a retry of a push. Its caller has seen that the latest retry has ended.
func RetryOf(first push.Push, latest uuid.UUID, in time.Duration) booking.Draft {
	d := Draft(first.Tenant, first.Recipient, in)
	d.Push.Retry, d.Retried = push.RetryLinks{Of: first.ID, First: first.ID, Doubt: true}, &latest
	return d
}

// InStatus brings a new push of the recipient into a state by the store's own methods. A scheduled push has an attempt
// of unknown outcome behind it.
func (b *Bundle) InStatus(t testing.TB, recipient string, status push.Status) push.Push {
	t.Helper()
	d := Draft(b.TenantID, recipient, 0)
	if status == push.Expired {
		d = Draft(b.TenantID, recipient, -time.Minute)
		d.Push.TTL = 30 * time.Second
	}
	p := MustBook(t, b.Store, nil, d).Push
	switch status {
	case push.Scheduled:
		b.MustFinish(t, b.Claimed(t, p), LostTrack)
	case push.Sending:
		b.Claimed(t, p)
	case push.Sent:
		b.MustFinish(t, b.Claimed(t, p), Sent)
	case push.Failed:
		b.MustFinish(t, b.Claimed(t, p), GaveUp)
	case push.Canceled:
		if _, err := b.Cancel(t.Context(), p.Tenant, p.ID); err != nil {
			t.Fatal(err)
		}
	case push.Expired:
		if c := b.MustClaim(t, recipient, nil); c.Outcome != booking.TooLate {
			t.Fatalf("%+v", c)
		}
	}
	b.WantStatus(t, p, status)
	return b.MustRead(t, p)
}
