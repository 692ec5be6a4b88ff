package campaigns

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
)

// recipientsAtOnce limits how many recipients of a campaign one statement reads.
const recipientsAtOnce = 1000

// CampaignRecipients returns up to limit recipients of a tenant's campaign that match a filter, after a line, in the order
// of lines. It returns fewer if few match; Next is set then, too, if there may be more. Recipients with pushes that are no
// longer kept are left out. If there is no such campaign, the error is [push.ErrNotFound].
func (s *Store) CampaignRecipients(ctx context.Context, tenant, id uuid.UUID, f broadcast.RecipientFilter, after, limit int) (page broadcast.RecipientPage, err error) {
	err = s.db.Snapshot(ctx, tenant, func(ctx context.Context, tx pgx.Tx) error {
		page = broadcast.RecipientPage{}
		var audience uuid.UUID
		err := tx.QueryRow(ctx, `SELECT audience_id FROM campaigns WHERE id = $1 AND tenant_id = $2`, id, tenant).Scan((*zeronull.UUID)(&audience))
		if err != nil || audience == uuid.Nil {
			return err
		}
		for scanned := 0; ; {
			rows, last, n, err := s.campaignLines(ctx, tx, tenant, audience, f.Recipient, after)
			if err != nil {
				return err
			}
			for i := range rows {
				if f.Outcome != "" && rows[i].Outcome != f.Outcome {
					continue
				}
				if len(page.Recipients) == limit {
					page.Next = page.Recipients[limit-1].Line
					return nil
				}
				page.Recipients = append(page.Recipients, rows[i])
			}
			if scanned += n; n < recipientsAtOnce {
				return nil
			}
			if after = last; scanned >= pg.MaxScanned {
				page.Next = after
				return nil
			}
		}
	})
	return page, err
}

const (
	campaignLinesSQL = `
		SELECT line, recipient, coalesce(outcome, 'pending'), push_id, recipient_key, requested_send_at, reason, rules FROM campaign_recipients
		WHERE audience_id = $1 AND line > $2 ORDER BY line LIMIT $3`
	campaignLineSQL = `
		SELECT line, recipient, coalesce(outcome, 'pending'), push_id, recipient_key, requested_send_at, reason, rules FROM campaign_recipients
		WHERE audience_id = $1 AND shard = $2 AND recipient_key = $3 AND recipient = $4`
)

// campaignLines reads recipients of an audience after a line, with their outcomes; if recipient is not empty, only that
// one. It returns the last line, and how many lines it read.
func (s *Store) campaignLines(ctx context.Context, tx pgx.Tx, tenant, audience uuid.UUID, recipient string, after int) (all []broadcast.Recipient, last, n int, err error) {
	sql, args := campaignLinesSQL, []any{audience, after, recipientsAtOnce}
	if recipient != "" {
		key := push.RecipientKey(tenant, recipient)
		sql, args = campaignLineSQL, []any{audience, push.Shard(key), key, recipient}
	}
	rows, _ := tx.Query(ctx, sql, args...)
	var ids []pushes.Ref
	all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r broadcast.Recipient, err error) {
		var key int64
		err = row.Scan(&r.Line, &r.Recipient, (*string)(&r.Outcome), (*zeronull.UUID)(&r.Push), &key, (*zeronull.Timestamptz)(&r.SendAt), &r.Reason, &r.Rules)
		if r.Push != uuid.Nil {
			ids = append(ids, pushes.RefOf(r.Push, key))
		}
		return r, err
	})
	if n = len(all); n > 0 {
		last = all[n-1].Line
	}
	if err != nil || len(ids) == 0 {
		return all, last, n, err
	}
	ends, err := s.pushEnds(ctx, tx, ids)
	kept := all[:0]
	for _, r := range all {
		if r.Push != uuid.Nil {
			end, known := ends[r.Push]
			if !known {
				continue
			}
			r.Outcome, r.SendAt, r.Reason = end.outcome(), end.sendAt, end.reason
		}
		kept = append(kept, r)
	}
	return kept, last, n, err
}

// pushEnd is the present state of a push.
type pushEnd struct {
	status push.Status
	sendAt time.Time
	reason string
}

// outcome returns the outcome of the push's recipient in a campaign.
func (e pushEnd) outcome() broadcast.Outcome {
	switch e.status {
	case push.Scheduled, push.Sending:
		return broadcast.OutcomeScheduled
	}
	return broadcast.Outcome(e.status)
}

const pushEndsSQL = `SELECT p.id, p.status, p.send_at, CASE WHEN p.status = 'canceled' AND p.last_error = '' THEN 'canceled' WHEN p.status IN ('failed', 'expired', 'canceled') THEN p.last_error ELSE '' END
	FROM {pushes} p WHERE p.shard = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[])`

// pushEnds returns the states of the pushes that exist, by id.
func (s *Store) pushEnds(ctx context.Context, tx pgx.Tx, all []pushes.Ref) (map[uuid.UUID]pushEnd, error) {
	ends := make(map[uuid.UUID]pushEnd, len(all))
	return ends, s.pushes.FindPushes(ctx, all, func(searches []pushes.Search) (found []uuid.UUID, err error) {
		for _, p := range searches {
			var (
				id uuid.UUID
				e  pushEnd
			)
			rows, _ := tx.Query(ctx, pg.In(s.db.Joining(pushEndsSQL), "{pushes}", p.Table), p.IDs, p.Shards)
			_, err := pgx.ForEachRow(rows, []any{&id, (*string)(&e.status), &e.sendAt, &e.reason}, func() error {
				ends[id], found = e, append(found, id)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		return found, nil
	})
}
