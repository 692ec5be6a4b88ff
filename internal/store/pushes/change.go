package pushes

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// cancelSQL cancels a push. A concurrent move hides the row in live from the statement, which then changes nothing and is
// run again. It also writes the entry of the audit log, so that a cancel is one exchange.
var cancelSQL = Ending{
	Rows:   `WHERE l.shard = ANY ($4::smallint[]) AND l.push_id = $1 AND l.recipient_key = $2 AND l.send_at = $3`,
	Shards: `$4`, Status: push.Canceled,
	after: `, recorded AS (
		INSERT INTO audit_log (tenant_id, actor, actor_id, actor_name, action, target, difference)
		SELECT $5::uuid, $6::text, $7::uuid, $8::text, $9::text, $1::uuid::text, $10::jsonb FROM ended
	)`,
}.SQL()

// askCancelSQL marks a push that is being sent: see live.cancel_asked.
const askCancelSQL = `UPDATE live SET cancel_asked = true
	WHERE shard = ANY ($4::smallint[]) AND push_id = $1 AND recipient_key = $2 AND send_at = $3 AND token IS NOT NULL`

// cancelTries bounds how often a cancel is run. Each concurrent move or ending attempt can cost one run.
const cancelTries = 20

// Cancel cancels a waiting push and returns it. An already canceled push is returned without an error, any other with
// [push.ErrNotCancelable]. If there is no such push, the error is [push.ErrNotFound].
func (s *Store) Cancel(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	return s.cancel(ctx, tenant, id, false)
}

// CancelUnlessSent cancels a push as [Store.Cancel] does. It marks a push that is being sent, so that the next claim cancels
// it: no further attempt begins.
func (s *Store) CancelUnlessSent(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	return s.cancel(ctx, tenant, id, true)
}

func (s *Store) cancel(ctx context.Context, tenant, id uuid.UUID, mark bool) (p push.Push, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		pushes := s.db.Layouts.Pushes()
		for range cancelTries {
			if p, err = s.readPush(ctx, c, tenant, id); err != nil || p.Status != push.Scheduled && !(mark && p.Status == push.Sending) {
				return err
			}
			sql, key := pg.In(cancelSQL, "{pushes}", pushes.At(p.SendAt)), push.RecipientKey(tenant, p.Recipient)
			if p.Status == push.Sending {
				tag, err := c.Exec(ctx, askCancelSQL, id, key, p.SendAt, pg.ShardsOf(key))
				if err != nil || tag.RowsAffected() > 0 {
					return err
				}
				continue // the attempt has ended
			}
			d := auditlogs.Difference{}
			d.Show("status", push.Scheduled, push.Canceled)
			args := append([]any{id, key, p.SendAt, pg.ShardsOf(key)}, append(auditlogs.ActorArgs(push.ActorOf(ctx), tenant), string(auditlog.PushCancel), d.Text())...)
			if _, err = c.Exec(ctx, sql, args...); err != nil {
				return err
			}
		}
		p, err = s.readPush(ctx, c, tenant, id)
		return err
	})
	if err == nil && p.Status != push.Canceled {
		err = push.ErrNotCancelable
	}
	return p, err
}

// Reschedule moves the push of the order's only draft to the draft's send time, if [booking.Decider.Move] grants it.
// Otherwise, or if the order only asks, the push keeps its time. A push that no longer waits is returned with
// [push.ErrNotReschedulable].
func (s *Store) Reschedule(ctx context.Context, o booking.Order) (booking.Decision, error) {
	var v booking.Decision
	err := s.db.Change(ctx, o.Tenant(), func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		r := s.NewBookingRead([]booking.Order{o}, true, 0)
		snapshot, err := r.Snapshot(ctx, s, c, s.db.Locking(false), true)
		if err != nil {
			return err
		}
		decider := booking.NewDecider(snapshot)
		v, err = decider.Move(o)
		if err := errors.Join(r.Close(), err); err != nil {
			return err
		}
		failpoint.Hit(failpoint.MoveLocked)
		return writeMove(ctx, c, r, decider.Granted)
	})
	return v, err
}

const move = `
	WITH moved AS (
		UPDATE {pushes} p SET send_at = $2, next_at = $2, requested_send_at = $3, expires_at = $4, plan = $5, level = $7, updated_at = statement_timestamp(),
			held_by = '', held_since = NULL, held_until = NULL, moved_at = statement_timestamp()
		WHERE p.shard = ANY ($6::smallint[]) AND id = $1 RETURNING id{whole}
	){events}
	SELECT`

// moveSQL moves a push within its table. carrySQL moves it to the table of the new send time.
var (
	moveSQL  = WithEvents(move, `moved`, scheduledEvent)
	carrySQL = WithEvents(`
	WITH gone AS (
		DELETE FROM {left} p WHERE p.shard = ANY ($6::smallint[]) AND id = $1 RETURNING `+movedColumns+`
	), moved AS (
		INSERT INTO {pushes} AS p (`+movedColumns+`, shard, send_at, next_at, requested_send_at, expires_at, plan, level, updated_at, moved_at)
		SELECT gone.*, recipient_key & 255, $2::timestamptz, $2::timestamptz, $3::timestamptz, $4::timestamptz, $5::bigint, $7::smallint, statement_timestamp(), statement_timestamp() FROM gone
		RETURNING p.id{whole}
	){events}
	SELECT`, `moved`, scheduledEvent)
)

func writeMove(ctx context.Context, c *pgxpool.Conn, r *BookingRead, granted []*booking.Decision) error {
	b := &pgx.Batch{}
	for i := range granted {
		before, p := &r.existing[0].Push, &granted[i].Push
		QueueMove(b, r.Pushes, *before, p)
		if d := moved(before, p); len(d) > 0 {
			auditlogs.QueueRecord(b, push.ActorOf(ctx), p.Tenant, auditlog.PushMove, p.ID.String(), d)
		}
	}
	return CommitMoves(ctx, c, b, granted)
}

// moved returns the difference that the audit log records for a move.
func moved(before, p *push.Push) auditlogs.Difference {
	d := auditlogs.Difference{}
	d.Show("send_at", before.SendAt, p.SendAt)
	d.Show("requested_send_at", before.RequestedSendAt, p.RequestedSendAt)
	d.Show("expires_at", before.ExpiresAt, p.ExpiresAt)
	return d
}

// QueueMove adds the statements that move a push to a batch. A push that is parked, because its campaign is paused, stays
// parked.
func QueueMove(b *pgx.Batch, pushes pg.Parts, before push.Push, p *push.Push) {
	old, key := before.SendAt, push.RecipientKey(p.Tenant, p.Recipient)
	b.Queue(`
		UPDATE live SET send_at = $3, next_at = CASE WHEN next_at = 'infinity' THEN next_at ELSE $3 END, expires_at = $4, plan = $5, rank = $6, phase = $6,
			put_off_at = NULL
		WHERE shard = ANY ($8::smallint[]) AND recipient_key = $2 AND send_at = $7 AND push_id = $1`,
		p.ID, key, p.SendAt, p.ExpiresAt, p.Gen, p.Rank(), old, pg.ShardsOf(key))
	table, to := pushes.At(old), pushes.At(p.SendAt)
	sql := pg.In(moveSQL, "{pushes}", table)
	switch {
	case table != to:
		sql = strings.ReplaceAll(pg.In(carrySQL, "{pushes}", to), "{left}", table)
	case p.SendAt.Equal(old) && p.RequestedSendAt.Equal(before.RequestedSendAt):
		sql = pg.In(withoutEvents(move), "{pushes}", table)
	}
	b.Queue(sql, p.ID, p.SendAt, p.RequestedSendAt, p.ExpiresAt, p.Gen, pg.ShardsOf(key), p.Level.Index())
	queueMoved(b, p, old, p.SendAt)
	b.Queue(rememberSQL, p.ID, key, old, before.Tenant, before.Channel, before.Category, uuidOrNull(&before.Campaign), before.CreatedAt)
}

// rememberSQL adds a push that is about to move to the bulk changes that still list their pushes, with the send time that it had when
// they were made. A later move finds it there. The locks make the end of a listing wait for this transaction.
const rememberSQL = `
	INSERT INTO bulk_change_pushes (change_id, push_id, recipient_key, send_at, outcome)
	SELECT c.id, $1, $2, $3, CASE WHEN coalesce($3 >= c.from_at, true) AND coalesce($3 < c.until_at, true) THEN '' ELSE 'outside' END
	FROM (SELECT * FROM bulk_changes WHERE tenant_id = $4 AND ended_at IS NULL AND NOT listed FOR SHARE) c
	WHERE c.created_at >= $8 AND (c.recipient_key IS NULL OR c.recipient_key = $2) AND c.channel IN ('', $5) AND c.category IN ('', $6)
		AND (c.campaign_id IS NULL OR c.campaign_id = $7)
	ON CONFLICT DO NOTHING`

// CommitMoves commits the moves that were queued for the granted pushes, with their near-limit events.
func CommitMoves(ctx context.Context, c *pgxpool.Conn, b *pgx.Batch, granted []*booking.Decision) error {
	if len(granted) > 0 {
		(*HeldCrowds)(nil).QueueChanged(b, granted)
		QueueNearLimits(b, granted)
	}
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.MoveCommitting)
	return res.Close()
}
