package campaigns

import (
	"context"
	"iter"

	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// While a campaign is paused, its waiting pushes are parked: they stay in live but never become due. Their next times stay
// in pushes. Claims park due pushes at once, and workers park the rest. Both hold a lock of the campaign, so that nothing
// is parked after a resume.

// campaignPortion limits how many pushes of a campaign one transaction parks or ends.
const campaignPortion = 1000

// waitingOf returns a query that reads and locks waiting pushes of a campaign that meet a condition. It skips rows that
// other transactions have locked.
func waitingOf(condition string) string {
	return `
	SELECT recipient_key, push_id, send_at, plan FROM live
	WHERE {shard} campaign_id = $1 AND token IS NULL` + condition + `
	LIMIT $2 FOR UPDATE SKIP LOCKED`
}

var (
	unparkedSQL   = waitingOf(` AND next_at < 'infinity' ORDER BY next_at`)
	parkedSQL     = waitingOf(` AND next_at = 'infinity' AND pause_id IS NULL`)
	parkedLateSQL = waitingOf(` AND next_at = 'infinity' AND expires_at <= statement_timestamp()`)
	allWaitingSQL = waitingOf(` ORDER BY next_at`)
)

// changeWaiting locks and changes waiting pushes of a campaign that is in one of these states: in each group of lanes a
// portion, in a transaction of its own. waiting selects them. It returns what change has returned, and reports whether
// there may be more.
func changeWaiting[T any](
	ctx context.Context, s *Runs, id uuid.UUID, states []broadcast.Status, waiting string, change func(ctx context.Context, tx pgx.Tx, found pushes.LiveRows) ([]T, error),
) (all []T, more bool, err error) {
	groups, err := s.lanesOf(ctx, id)
	if err != nil {
		return nil, false, err
	}
	for lanes := range groups {
		var some []T
		err = s.step(ctx, id, states, func(ctx context.Context, tx pgx.Tx, _ *Running) (err error) {
			some = nil
			rows, _ := tx.Query(ctx, pg.InShard(waiting, "$3::bigint", lanes...), append([]any{id, campaignPortion}, pg.ShardArg(lanes)...)...)
			var found pushes.LiveRows
			var l pushes.LiveRow
			_, err = pgx.ForEachRow(rows, []any{&l.Key, &l.ID, &l.SendAt, &l.Plan}, func() error {
				found.Add(l)
				return nil
			})
			if err != nil || len(found.IDs) == 0 {
				return err
			}
			more = more || len(found.IDs) == campaignPortion
			some, err = change(ctx, tx, found)
			return err
		})
		if all = append(all, some...); err != nil {
			return all, more, err
		}
	}
	return all, more, nil
}

// collectByWeek runs a statement that changes locked pushes, for the table of each week, and collects its rows.
func collectByWeek[T any](ctx context.Context, s *Runs, tx pgx.Tx, found pushes.LiveRows, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	weeks := s.db.Layouts.Pushes()
	for table, at := range pg.ByTable(found.SendAt, weeks.At) {
		part := found.Some(at)
		withRows := append([]any{part.Keys, part.SendAt, part.IDs, pg.ShardsOf(part.Keys...)}, args...)
		rows, _ := tx.Query(ctx, pg.In(s.db.Joining(sql), "{pushes}", table), withRows...)
		if all, err = pgx.AppendRows(all, rows, scan); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// lanesOf returns the lanes that may have waiting pushes of a campaign, in groups that one transaction may touch. If each
// shard is a lane, it leaves out the lanes without any, because a small campaign has none in most of them.
func (s *Runs) lanesOf(ctx context.Context, id uuid.UUID) (iter.Seq[[]push.Lane], error) {
	if !s.db.ByShard() {
		return s.db.InTurn(s.CampaignLanes()), nil
	}
	shards, err := pg.Collect(ctx, s.db, pgx.RowTo[int16], `SELECT DISTINCT shard FROM live WHERE campaign_id = $1 AND token IS NULL ORDER BY 1`, id)
	lanes := make([]push.Lane, len(shards))
	for i, shard := range shards {
		lanes[i] = push.Lane{First: int(shard), Last: int(shard)}
	}
	return s.db.InTurn(lanes), err
}

// parkSQL parks locked pushes.
const parkSQL = `
	UPDATE live l SET next_at = 'infinity' FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
	WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token IS NULL`

// unparkSQL restores the next times of pushes from pushes. It records that the pause held the pushes that are already due.
const unparkSQL = `
	WITH due AS (
		UPDATE live l SET next_at = n.next_at FROM (
			SELECT n.*, p.next_at FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
			CROSS JOIN LATERAL (SELECT next_at FROM {pushes} p WHERE p.shard = ANY ($4::smallint[]) AND p.id = n.id OFFSET 0) p
		) n
		WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token IS NULL
		RETURNING l.recipient_key, l.push_id, n.next_at
	), held AS (
		UPDATE {pushes} p SET held_by = '` + push.PausedCampaign + `', held_since = greatest(c.paused_at, due.next_at), held_until = statement_timestamp()
		FROM due, campaigns c
		WHERE p.shard = ANY ($4::smallint[]) AND p.id = due.push_id AND due.next_at <= statement_timestamp() AND c.id = $5
	)
	SELECT recipient_key, next_at, next_at - statement_timestamp() FROM due`

// ParkCampaign parks some waiting pushes of a campaign that is pausing or paused, earliest first. When none is left, a
// pausing campaign becomes paused. It reports whether to call it again at once.
func (s *Runs) ParkCampaign(ctx context.Context, id uuid.UUID) (more bool, err error) {
	held := []broadcast.Status{broadcast.Pausing, broadcast.Paused}
	_, more, err = changeWaiting(ctx, s, id, held, unparkedSQL, func(ctx context.Context, tx pgx.Tx, found pushes.LiveRows) ([]struct{}, error) {
		_, err := tx.Exec(ctx, s.db.Joining(parkSQL), found.Keys, found.SendAt, found.IDs, pg.ShardsOf(found.Keys...))
		failpoint.Hit(failpoint.CampaignParked)
		return nil, err
	})
	if err != nil || more {
		return more, err
	}
	err = s.step(ctx, id, held, func(ctx context.Context, tx pgx.Tx, p *Running) error {
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM live WHERE campaign_id = $1 AND next_at < 'infinity' AND token IS NULL)`, id).Scan(&more)
		if err == nil && !more && p.Status == broadcast.Pausing {
			_, err = tx.Exec(ctx, `UPDATE campaigns SET status = 'paused', updated_at = clock_timestamp() WHERE id = $1`, id)
		}
		return err
	})
	return more, err
}

// UnparkCampaign unparks some pushes of a campaign that goes on. It reports whether to call it again at once.
func (s *Runs) UnparkCampaign(ctx context.Context, id uuid.UUID) (due []booking.Unparked, more bool, err error) {
	goesOn := []broadcast.Status{broadcast.Starting, broadcast.Running}
	due, more, err = changeWaiting(ctx, s, id, goesOn, parkedSQL, func(ctx context.Context, tx pgx.Tx, found pushes.LiveRows) ([]booking.Unparked, error) {
		return collectByWeek(ctx, s, tx, found, pgx.RowToStructByPos[booking.Unparked], unparkSQL, id)
	})
	if err != nil || more {
		return due, more, err
	}
	err = s.step(ctx, id, goesOn, func(ctx context.Context, tx pgx.Tx, _ *Running) error {
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM live WHERE campaign_id = $1 AND next_at = 'infinity' AND pause_id IS NULL AND token IS NULL)`, id).Scan(&more)
		if err == nil && !more {
			_, err = tx.Exec(ctx, `UPDATE campaigns SET parked = false WHERE id = $1`, id)
		}
		return err
	})
	return due, more, err
}

var (
	withdrawSomeSQL = pushes.Ending{Rows: pushes.LockedRows, Shards: `$4`, Status: push.Canceled, Reason: `'` + booking.CampaignCanceledReason + `'`, Columns: pushes.EndedSQL}.SQL()
	expireSomeSQL   = pushes.Ending{Rows: pushes.LockedRows, Shards: `$4`, Status: push.Expired, Reason: `'it expired while its campaign was paused'`, Columns: pushes.EndedSQL}.SQL()
)

// endSome ends some waiting pushes of a campaign that is in one of these states. waiting selects them, end ends them.
func (s *Runs) endSome(ctx context.Context, id uuid.UUID, states []broadcast.Status, waiting string, end string) (ended []booking.Ended, more bool, err error) {
	return changeWaiting(ctx, s, id, states, waiting, func(ctx context.Context, tx pgx.Tx, found pushes.LiveRows) ([]booking.Ended, error) {
		return collectByWeek(ctx, s, tx, found, attempts.CollectEnded, end)
	})
}

// ExpireParked ends some parked pushes of a paused campaign that have expired. It reports whether to call it again at
// once.
func (s *Runs) ExpireParked(ctx context.Context, id uuid.UUID) (ended []booking.Ended, more bool, err error) {
	return s.endSome(ctx, id, []broadcast.Status{broadcast.Pausing, broadcast.Paused}, parkedLateSQL, expireSomeSQL)
}

// WithdrawCampaign cancels some waiting pushes of a campaign that is being canceled. It reports whether to call it again
// at once.
func (s *Runs) WithdrawCampaign(ctx context.Context, id uuid.UUID) (ended []booking.Ended, more bool, err error) {
	return s.endSome(ctx, id, []broadcast.Status{broadcast.Canceling}, allWaitingSQL, withdrawSomeSQL)
}

// DropUndecided cancels the next undecided recipients, after a place, of a campaign that is being canceled. It returns the
// place of the last one, and reports whether there may be more after it.
func (s *Runs) DropUndecided(ctx context.Context, c broadcast.Campaign, shards push.Lane, after Position) (next Position, more bool, err error) {
	err = s.step(ctx, c.ID, []broadcast.Status{broadcast.Canceling}, func(ctx context.Context, tx pgx.Tx, _ *Running) error {
		next, more = after, false
		rows, _ := tx.Query(ctx, pg.InShard(undecidedPlacesSQL, "$2::bigint", shards)+` FOR UPDATE`, c.Audience, shards.First, shards.Last,
			after.Shard, after.Key, after.Recipient, 5*campaignPortion)
		var (
			keys       []int64
			recipients []string
			key        int64
			recipient  string
		)
		_, err := pgx.ForEachRow(rows, []any{&key, &recipient}, func() error {
			keys, recipients = append(keys, key), append(recipients, recipient)
			return nil
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		next, more = Position{push.Shard(key), key, recipient}, len(keys) == 5*campaignPortion
		_, err = tx.Exec(ctx, s.db.Joining(`
			UPDATE campaign_recipients r SET outcome = 'canceled', reason = '`+booking.CampaignCanceledReason+`', decided_at = statement_timestamp()
			FROM unnest($3::bigint[], $4::text[]) AS n (recipient_key, recipient)
			WHERE r.shard = ANY ($2::smallint[]) AND r.audience_id = $1 AND r.shard = (n.recipient_key & 255)::smallint
				AND r.recipient_key = n.recipient_key AND r.recipient = n.recipient`), c.Audience, pg.ShardsOf(keys...), keys, recipients)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, countedSQL, c.ID, 0, 0, 0, 0, 0, len(keys))
		return err
	})
	return next, more, err
}
