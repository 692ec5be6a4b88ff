package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

const (
	// copyPortion is how many recipients one transaction copies.
	copyPortion = 5000
	// copyAlive is for how long a copy is kept that nobody carries on.
	copyAlive = time.Hour
)

// CopyAudience carries the copy of a campaign's audience on by one portion, and reports whether it is whole. It goes on where an
// earlier call has ended, by whichever worker. The copy is of the audience that the campaign has at the first call: that is
// kept meanwhile, even if another one replaces it. Recipients that were erased are left out.
//
// The errors are [push.ErrNotFound], a [*push.CampaignStateError] and [push.ErrNothingToCopy].
func (s *Store) CopyAudience(ctx context.Context, c push.CampaignCopy) (whole bool, err error) {
	err = s.inTx(ctx, func(ctx context.Context, conn *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var made bool
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM campaigns WHERE id = $1)`, [16]byte(c.ID)).Scan(&made); err != nil || made {
				whole = made
				return err
			}
			upload, from, err := copyUnderWay(ctx, tx, c)
			if err != nil {
				return err
			}
			// An erasure that has one of these rows is waited for, and one that comes later finds the new rows: it looks until there are none.
			return tx.QueryRow(ctx, `
				WITH old AS (
					SELECT r.* FROM campaign_recipients r JOIN campaign_uploads u ON u.id = $1 AND r.audience_id = u.copy_of AND r.line > u.copied_line
					ORDER BY r.line LIMIT $4 FOR KEY SHARE OF r
				), new AS (
					INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line, address, variables)
					SELECT shard, $1, recipient_key, recipient, tenant_id, $2, line, address, variables FROM old WHERE recipient <> '' RETURNING line
				), step AS (
					SELECT count(*) AS looked, max(line) AS line, (SELECT count(*) FROM new) AS copied FROM old
				)
				UPDATE campaign_uploads u SET copied_line = coalesce(step.line, u.copied_line), copied = u.copied + step.copied, alive_until = clock_timestamp() + $5::interval
				FROM step WHERE u.id = $1 AND u.copy_of = $3 RETURNING step.looked < $4`, [16]byte(upload), [16]byte(c.ID), [16]byte(from), copyPortion, copyAlive).Scan(&whole)
		})
	})
	return whole, err
}

// copyUnderWay locks the copy of a campaign's audience, which begins if there is none.
func copyUnderWay(ctx context.Context, tx pgx.Tx, c push.CampaignCopy) (upload, from uuid.UUID, err error) {
	err = tx.QueryRow(ctx, `SELECT id, copy_of FROM campaign_uploads WHERE campaign_id = $1 AND copy_of IS NOT NULL AND NOT ended FOR NO KEY UPDATE`, [16]byte(c.ID)).
		Scan((*[16]byte)(&upload), (*[16]byte)(&from))
	if !errors.Is(err, pgx.ErrNoRows) {
		return upload, from, err
	}
	p, err := lockPattern(ctx, tx, c)
	if err != nil {
		return upload, from, err
	}
	if p.Audience == uuid.Nil {
		return upload, from, push.ErrNothingToCopy
	}
	upload, from = uuid.Must(uuid.NewV7()), p.Audience
	_, err = tx.Exec(ctx, `INSERT INTO campaign_uploads (id, tenant_id, campaign_id, alive_until, copy_of) VALUES ($1, $2, $3, clock_timestamp() + $4::interval, $5)`,
		[16]byte(upload), [16]byte(c.Tenant), [16]byte(c.ID), copyAlive, [16]byte(from))
	return upload, from, err
}

// lockPattern locks a campaign that is to be copied against changes.
func lockPattern(ctx context.Context, tx pgx.Tx, c push.CampaignCopy) (push.Campaign, error) {
	rows, _ := tx.Query(ctx, `SELECT `+campaignColumns+` FROM campaigns p WHERE id = $1 AND tenant_id = $2 FOR SHARE`, [16]byte(c.Of), [16]byte(c.Tenant))
	p, err := pgx.CollectExactlyOneRow(rows, collectCampaign)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, push.ErrNotFound
	}
	if err == nil && !p.Status.Pattern() {
		return p, &push.CampaignStateError{Campaign: p, Detail: fmt.Sprintf("the campaign is %s; only a draft, or one that has finished, can be the pattern of a schedule", p.Status)}
	}
	return p, err
}

// MakeCopy makes a campaign of which all recipients are copied, as a draft that is sent when it is started; or finds it, if it was
// made before. A latest time is as far behind the send time as it was. The tenant may have most campaigns that have not ended. The
// errors are those of [Store.CopyAudience], and [push.ErrTooManyCampaigns].
func (s *Store) MakeCopy(ctx context.Context, c push.CampaignCopy, most int) error {
	return s.inTx(ctx, func(ctx context.Context, conn *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, [16]byte(c.Tenant)); err != nil { // one at a time
				return err
			}
			var (
				made   bool
				others int
			)
			err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM campaigns WHERE id = $2),
					(SELECT count(*) FROM (SELECT FROM campaigns WHERE tenant_id = $1 AND ended_at IS NULL LIMIT $3) c)`, [16]byte(c.Tenant), [16]byte(c.ID), most).Scan(&made, &others)
			switch {
			case err != nil || made:
				return err
			case others >= most:
				return push.ErrTooManyCampaigns
			}
			if _, err := lockPattern(ctx, tx, c); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, `
				WITH copy AS (
					UPDATE campaign_uploads SET copy_of = NULL WHERE campaign_id = $1 AND copy_of IS NOT NULL AND NOT ended AND copied > 0 RETURNING id, copied
				)
				INSERT INTO campaigns (id, tenant_id, name, channel, category, spread_s, on_conflict, latest, expires_after_ms, message, metadata, audience_id, audience)
				SELECT $1, p.tenant_id, left(p.name, $4) || $3, p.channel, p.category, p.spread_s, p.on_conflict,
					clock_timestamp() + (p.latest - coalesce(p.send_at, p.local_time AT TIME ZONE 'UTC', p.started_at)), p.expires_after_ms, p.message, p.metadata, copy.id, copy.copied
				FROM campaigns p CROSS JOIN copy WHERE p.id = $2`, [16]byte(c.ID), [16]byte(c.Of), c.Suffix, longestCopied)
			if err == nil && tag.RowsAffected() == 0 {
				err = push.ErrNothingToCopy
			}
			return err
		})
	})
}

// longestCopied is how many characters of a name stay in that of a copy.
const longestCopied = 100
