package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// overtake is a booking that commits while another one of the same recipient waits for the lock: it has the lock and an
// uncommitted row when the other begins.
func (b *bundle) overtake(t *testing.T, at time.Time, other func()) {
	t.Helper()
	key := push.RecipientKey(b.tenant, "anna")
	b.exec(t, `BEGIN`)
	b.exec(t, `SELECT pg_advisory_xact_lock($1)`, key)
	b.exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
		VALUES ($1, $2, $3, 'anna', 'log', '{}', $4, $4, $4, $5)`, uuid.New(), b.tenant, key, at, at.Add(time.Hour))
	done := make(chan struct{})
	go func() {
		defer close(done)
		other()
	}()
	eventually(t, "the other booking waits for the lock", func() bool {
		return ask[int](t, b.watch, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`) == 1
	})
	b.exec(t, `COMMIT`)
	<-done
}

// inOneStatement is what the store must not do: it takes the lock and looks at the neighbours in one statement. The
// statement's snapshot is older than its wait for the lock.
func inOneStatement(ctx context.Context, db *pgx.Conn, d booking.Draft) (booked bool, err error) {
	p := d.Push
	tag, err := db.Exec(ctx, `
		WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock($1))
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
		SELECT $2, $3, $1, $4, 'log', '{}', $5::timestamptz, $5, $5, $5 + interval '1 hour' FROM locked
		WHERE NOT EXISTS (SELECT FROM pushes WHERE recipient_key = $1
			AND send_at > $5 - interval '1 minute' AND send_at < $5 + interval '1 minute')`,
		push.RecipientKey(p.Tenant, p.Recipient), p.ID, p.Tenant, p.Recipient, p.SendAt)
	return tag.RowsAffected() == 1, err
}

// TestBook_LockAndReadInOneStatement: a statement that takes the lock and reads the neighbours books a second push into
// the same minute. The store, which reads in a later statement, refuses it.
func TestBook_LockAndReadInOneStatement(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}

	t.Run("one statement", func(t *testing.T) {
		t.Parallel()
		b := setupAlone(t)
		d, db := draft(b.tenant, "anna", time.Hour), connect(t, b.url)
		b.overtake(t, d.Push.SendAt, func() {
			if booked, err := inOneStatement(t.Context(), db, d); !booked || err != nil {
				t.Errorf("the statement does not book twice: booked %v, %v", booked, err)
			}
		})
		findings, err := b.Audit(t.Context(), policy, time.Now())
		if err != nil || len(findings) != 1 || findings[0].Check != "promised-window" {
			t.Errorf("the audit finds %+v, %v", findings, err)
		}
		if booked, err := inOneStatement(t.Context(), db, draft(b.tenant, "anna", time.Hour)); booked || err != nil {
			t.Errorf("even alone it books: %v, %v", booked, err)
		}
	})

	t.Run("the store", func(t *testing.T) {
		t.Parallel()
		b := setupAlone(t)
		d := draft(b.tenant, "anna", time.Hour)
		b.overtake(t, d.Push.SendAt, func() {
			v, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: policy})
			if err != nil || v[0].Outcome != booking.NoPlace || len(v[0].Quota.Violations) != 1 {
				t.Errorf("%+v, %v", v, err)
			}
		})
		b.audit(t, policy)
	})

	t.Run("the store, moving", func(t *testing.T) {
		t.Parallel()
		b := setupAlone(t)
		p := b.booked(t, "anna", 2*time.Hour)
		old := p.SendAt
		p.SendAt = p.SendAt.Add(-time.Hour)
		b.overtake(t, p.SendAt, func() {
			v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: policy})
			if err != nil || v.Outcome != booking.NoPlace {
				t.Errorf("%+v, %v", v, err)
			}
		})
		if now := b.read(t, p); !now.SendAt.Equal(old) || now.Gen != p.Gen {
			t.Errorf("the old place was not kept: %+v", now)
		}
		b.audit(t, policy)
	})
}
