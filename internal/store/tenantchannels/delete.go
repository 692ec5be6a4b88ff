package tenantchannels

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// A deletion has three steps. BeginDelete marks the channel: from then on no process books pushes for it, except in
// transactions that have read its earlier version. When these have ended, CancelPushes ends what waits. Delete removes the
// row if nothing is left. A deletion that was interrupted goes on with the next request.

// bookedSQL lists the pushes of a tenant, $1, that have not ended, through a channel, $2.
const bookedSQL = `SELECT l.recipient_key, l.send_at, l.push_id, l.plan, l.token IS NULL AS waits FROM live l WHERE l.tenant_id = $1 AND l.own_channel = $2
	UNION ALL
	SELECT l.recipient_key, l.send_at, l.push_id, l.plan, l.token IS NULL FROM live l WHERE l.tenant_id = $1 AND l.own_channel IS NULL AND l.channel = $2`

// BeginDelete marks a channel for deletion. It returns a [*tenantchannel.InUseError] instead if campaigns go on booking pushes for it,
// or without cancel if pushes are booked. It returns [push.ErrNotFound] if there is no such channel. It goes on with a deletion that was
// interrupted, or is under way.
func (s *Store) BeginDelete(ctx context.Context, tenant uuid.UUID, name string, cancel bool) (d tenantchannel.Deletion, err error) {
	err = s.locked(ctx, tenant, name, func(ctx context.Context, tx pgx.Tx, was tenantchannel.Channel) error {
		if was.ID == uuid.Nil {
			return push.ErrNotFound
		}
		d = tenantchannel.Deletion{Tenant: tenant, ID: was.ID, Name: name, Cancel: cancel}
		if was.Deleting {
			_, err := tx.Exec(ctx, `UPDATE tenant_channels SET cancels = cancels OR $2 WHERE id = $1`, was.ID, cancel)
			return err
		}
		used, err := usesOf(ctx, tx, tenant, name)
		switch {
		case err != nil:
			return err
		case used.Campaigns > 0 || used.Pushes > 0 && !cancel:
			return &used
		}
		if _, err := tx.Exec(ctx, `UPDATE tenant_channels SET deleting_at = clock_timestamp(), cancels = $2 WHERE id = $1`, was.ID, cancel); err != nil {
			return err
		}
		return s.bump(ctx, tx, tenant, was.ID)
	})
	return d, err
}

// usesOf counts what a deletion would leave without its channel. Campaigns count that have recipients without a decision: those would
// get the campaign through the operator's channel of that name.
func usesOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, name string) (used tenantchannel.InUseError, err error) {
	err = tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM (`+bookedSQL+`) b), (
		SELECT count(*) FROM campaigns WHERE tenant_id = $1 AND channel = $2 AND status IN ('starting', 'running', 'pausing', 'paused')
			AND booked + refused + opted_out + invalid + dropped < audience)`, tenant, name).Scan(&used.Pushes, &used.Campaigns)
	return used, err
}

func (s *Store) bump(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	version, err := nextVersion(ctx, tx, tenant)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE tenant_channels SET version = $2 WHERE id = $1`, id, version)
	return err
}

// KeepChannel ends a deletion that failed. It leaves the deletion of another request that cancels pushes, if this one may not.
func (s *Store) KeepChannel(ctx context.Context, d tenantchannel.Deletion) error {
	return s.locked(ctx, d.Tenant, d.Name, func(ctx context.Context, tx pgx.Tx, was tenantchannel.Channel) error {
		if was.ID != d.ID || !was.Deleting || was.Cancels && !d.Cancel {
			return nil
		}
		if was.Canceled > 0 { // until a campaign was started: the channel stays, and these pushes are not booked again
			change := auditlogs.Difference{}
			change.Show("canceled", nil, was.Canceled)
			if err := auditlogs.Record(ctx, tx, d.Tenant, auditlog.ChannelChange, d.Name, change); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE tenant_channels SET deleting_at = NULL, cancels = false, canceled = 0 WHERE id = $1`, was.ID); err != nil {
			return err
		}
		return s.bump(ctx, tx, d.Tenant, was.ID)
	})
}

// canceledSQL ends waiting pushes of a channel that is being deleted.
var canceledSQL = pushes.Ending{
	Rows: `USING unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::bigint[]) AS n (recipient_key, send_at, id, plan)
		WHERE l.shard = ANY ($5::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token IS NULL`,
	Shards: `$5`, Status: push.Canceled, Reason: `'` + booking.ChannelDeletedReason + `'`, Columns: pushes.EndedSQL,
}.SQL()

// CancelPushes cancels up to limit waiting pushes of a channel, and returns them. It adds their number to the channel. It returns
// [tenantchannel.ErrBusy], and cancels nothing more, if another request has ended the deletion.
func (s *Store) CancelPushes(ctx context.Context, d tenantchannel.Deletion, limit int) (ended []booking.Ended, err error) {
	err = s.db.Change(ctx, d.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		rows, _ := c.Query(ctx, `SELECT recipient_key, send_at, push_id, plan FROM (`+bookedSQL+`) b WHERE waits LIMIT $3`, d.Tenant, d.Name, limit)
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l pushes.LiveRow, err error) {
			err = row.Scan(&l.Key, &l.SendAt, &l.ID, &l.Plan)
			return l, err
		})
		if err != nil {
			return err
		}
		weeks := s.db.Layouts.Pushes()
		for table, at := range pg.ByTable(found, func(l pushes.LiveRow) string { return weeks.At(l.SendAt) }) {
			var r pushes.LiveRows
			for _, i := range at {
				r.Add(found[i])
			}
			var now []booking.Ended
			err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) (err error) {
				rows, _ := tx.Query(ctx, pg.In(s.db.Joining(canceledSQL), "{pushes}", table), r.Keys, r.SendAt, r.IDs, r.Plans, pg.ShardsOf(r.Keys...))
				if now, err = pgx.CollectRows(rows, attempts.CollectEnded); err != nil {
					return err
				}
				tag, err := tx.Exec(ctx, `UPDATE tenant_channels SET canceled = canceled + $2 WHERE id = $1 AND deleting_at IS NOT NULL`, d.ID, len(now))
				if err == nil && tag.RowsAffected() == 0 {
					err = tenantchannel.ErrBusy
				}
				return err
			})
			if err != nil {
				return err
			}
			ended = append(ended, now...)
		}
		return nil
	})
	return ended, err
}

// leftSQL counts the drafts of campaigns, and the schedules, of a tenant, $1, that name a channel, $2.
const leftSQL = `SELECT (SELECT count(*) FROM campaigns WHERE tenant_id = $1 AND channel = $2 AND status = 'draft'), (
	SELECT count(*) FROM schedules s LEFT JOIN campaigns c ON c.id = s.campaign_id
	WHERE s.tenant_id = $1 AND s.deleted_at IS NULL AND coalesce(c.channel, s.push ->> 'channel') = $2)`

// DeleteChannel deletes a channel that is marked for deletion. It returns a [*tenantchannel.InUseError] if it is in use, and
// [tenantchannel.ErrBusy] if another request has ended the deletion.
func (s *Store) DeleteChannel(ctx context.Context, d tenantchannel.Deletion) (deleted tenantchannel.Deleted, err error) {
	tenant, name := d.Tenant, d.Name
	err = s.locked(ctx, tenant, name, func(ctx context.Context, tx pgx.Tx, was tenantchannel.Channel) error {
		switch {
		case was.ID != d.ID: // an earlier run, or another request, deleted it; it may have been made again
			return nil
		case !was.Deleting:
			return tenantchannel.ErrBusy
		}
		deleted.Canceled = was.Canceled
		used, err := usesOf(ctx, tx, tenant, name)
		switch {
		case err != nil:
			return err
		case used.Campaigns+used.Pushes > 0:
			used.Canceled = was.Canceled
			return &used
		}
		change := auditlogs.Difference{}
		change.Show("type", was.Type, nil)
		if was.Canceled > 0 {
			change.Show("canceled", nil, was.Canceled)
		}
		if err := tx.QueryRow(ctx, leftSQL, tenant, name).Scan(&deleted.Drafts, &deleted.Schedules); err != nil {
			return err
		}
		if err := auditlogs.Record(ctx, tx, tenant, auditlog.ChannelDelete, name, change); err != nil {
			return err
		}
		if err := s.bump(ctx, tx, tenant, was.ID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM tenant_channels WHERE id = $1`, was.ID)
		return err
	})
	return deleted, err
}
