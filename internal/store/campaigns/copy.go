package campaigns

import (
	"context"
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/auditlogs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
)

// copyPortion limits how many recipients one transaction copies.
const copyPortion = 5000

// copying is an unfinished copy of an audience.
type copying struct {
	id, of    uuid.UUID
	shard     int // with key and recipient: the last recipient that was copied
	key       int64
	recipient string
}

// CopyAudience copies the next portion of a campaign's audience, and reports whether the copy is complete. It continues
// where an earlier call of any worker ended. It copies the audience that the campaign had at the first call; that audience
// is kept until the copy is complete, even if the campaign gets another one. Erased recipients are left out. most is the
// maximum number of bytes of all the tenant's audiences; 0: no maximum.
//
// The errors are [push.ErrNotFound], [*broadcast.StateError], [*booking.Capped] and [broadcast.ErrNothingToCopy].
func (s *Runs) CopyAudience(ctx context.Context, c broadcast.Copy, most int) (whole bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, conn *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM campaigns WHERE id = $1)`, c.ID).Scan(&whole); err != nil || whole {
				return err
			}
			at, err := copyUnderWay(ctx, tx, c, most)
			if err != nil {
				return err
			}
			last := push.Shards - 1
			if s.db.ByShard() { // a transaction may touch only one shard
				err := tx.QueryRow(ctx, `SELECT shard FROM campaign_recipients WHERE audience_id = $1 AND (shard, recipient_key, recipient) > ($2, $3, $4) ORDER BY shard LIMIT 1`,
					at.of, at.shard, at.key, at.recipient).Scan(&last)
				if errors.Is(err, pgx.ErrNoRows) {
					whole = true
					return nil
				}
				if err != nil {
					return err
				}
			}
			var looked int
			err = tx.QueryRow(ctx, copyAudienceSQL, at.id, at.of, c.ID, at.shard, at.key, at.recipient, last, copyPortion, uploadLease).Scan(&looked)
			whole = looked < copyPortion && !s.db.ByShard()
			return err
		})
	})
	return whole, err
}

// copyAudienceSQL copies a portion. It waits for an erasure that has locked one of the rows. A later erasure finds the new
// rows, because it repeats its search until there are none.
const copyAudienceSQL = `
	WITH old AS (
		SELECT * FROM campaign_recipients WHERE audience_id = $2 AND (shard, recipient_key, recipient) > ($4, $5, $6) AND shard <= $7
		ORDER BY shard, recipient_key, recipient LIMIT $8 FOR KEY SHARE
	), new AS (
		INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line, address, variables)
		SELECT shard, $1, recipient_key, recipient, tenant_id, $3, line, address, variables FROM old WHERE recipient <> '' RETURNING line
	), step AS (
		SELECT count(*) AS looked, (SELECT count(*) FROM new) AS copied FROM old
	), stop AS (
		SELECT shard, recipient_key, recipient FROM old ORDER BY shard DESC, recipient_key DESC, recipient DESC LIMIT 1
	)
	UPDATE campaign_uploads u SET alive_until = clock_timestamp() + $9::interval, copied = u.copied + step.copied,
		copied_shard = coalesce(stop.shard, u.copied_shard), copied_key = coalesce(stop.recipient_key, u.copied_key), copied_recipient = coalesce(stop.recipient, u.copied_recipient)
	FROM step LEFT JOIN stop ON true WHERE u.id = $1 RETURNING step.looked`

// copyUnderWay locks the unfinished copy of a campaign's audience, or begins one.
func copyUnderWay(ctx context.Context, tx pgx.Tx, c broadcast.Copy, most int) (at copying, err error) {
	err = tx.QueryRow(ctx, `
		SELECT id, copy_of, copied_shard, copied_key, copied_recipient FROM campaign_uploads WHERE campaign_id = $1 AND copy_of IS NOT NULL AND NOT ended FOR NO KEY UPDATE`,
		c.ID).Scan(&at.id, &at.of, &at.shard, &at.key, &at.recipient)
	if !errors.Is(err, pgx.ErrNoRows) {
		return at, err
	}
	p, err := lockPattern(ctx, tx, c)
	if err != nil {
		return at, err
	}
	if p.Audience == uuid.Nil {
		return at, broadcast.ErrNothingToCopy
	}
	at = copying{id: uuid.Must(uuid.NewV7()), of: p.Audience, shard: -1}
	_, err = tx.Exec(ctx, `INSERT INTO campaign_uploads (id, tenant_id, campaign_id, alive_until, copy_of, bytes)
		VALUES ($1, $2, $3, clock_timestamp() + $4::interval, $5, coalesce((SELECT bytes FROM campaign_uploads WHERE id = $5), 0))`,
		at.id, c.Tenant, c.ID, uploadLease, at.of)
	if err == nil {
		err = bytesFit(ctx, tx, c.Tenant, most)
	}
	return at, err
}

// lockPattern locks a campaign to copy against changes.
func lockPattern(ctx context.Context, tx pgx.Tx, c broadcast.Copy) (broadcast.Campaign, error) {
	rows, _ := tx.Query(ctx, `SELECT `+campaignColumns+` FROM campaigns p WHERE id = $1 AND tenant_id = $2 FOR SHARE`, c.Of, c.Tenant)
	p, err := pgx.CollectExactlyOneRow(rows, collectCampaign)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, push.ErrNotFound
	}
	if err == nil && !p.Status.Pattern() {
		return p, &broadcast.StateError{Campaign: p, Detail: fmt.Sprintf("the campaign is %s; only a draft, or one that has finished, can be the pattern of a schedule", p.Status)}
	}
	return p, err
}

// MakeCopy creates a campaign from a complete copy of an audience, unless it exists. The campaign is a draft without a
// send time, to be sent when it is started. If the original has a latest time, the copy's is as long after now as the
// original's is after its send time. The tenant may have up to most campaigns that have not ended. It returns the errors
// of [Runs.CopyAudience] and [broadcast.ErrTooMany].
func (s *Runs) MakeCopy(ctx context.Context, c broadcast.Copy, most int) error {
	return s.db.InTx(ctx, func(ctx context.Context, conn *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, c.Tenant); err != nil { // one creation at a time
				return err
			}
			var (
				made   bool
				others int
			)
			err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM campaigns WHERE id = $2),
					(SELECT count(*) FROM (SELECT FROM campaigns WHERE tenant_id = $1 AND ended_at IS NULL LIMIT $3) c)`, c.Tenant, c.ID, most).Scan(&made, &others)
			switch {
			case err != nil || made:
				return err
			case others >= most:
				return broadcast.ErrTooMany
			}
			if _, err := lockPattern(ctx, tx, c); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, `
				WITH copy AS (
					UPDATE campaign_uploads SET copy_of = NULL, alive_until = 'infinity' WHERE campaign_id = $1 AND copy_of IS NOT NULL AND NOT ended AND copied > 0 RETURNING id, copied
				)
				INSERT INTO campaigns (id, tenant_id, name, channel, category, spread_s, on_conflict, latest, expires_after_ms, message, metadata, audience_id, audience)
				SELECT $1, p.tenant_id, left(p.name, $4) || $3, p.channel, p.category, p.spread_s, p.on_conflict,
					clock_timestamp() + (p.latest - coalesce(p.send_at, p.local_time AT TIME ZONE 'UTC', p.started_at)), p.expires_after_ms, p.message, p.metadata, copy.id, copy.copied
				FROM campaigns p CROSS JOIN copy WHERE p.id = $2`, c.ID, c.Of, c.Suffix, longestCopied)
			if err == nil && tag.RowsAffected() == 0 {
				err = broadcast.ErrNothingToCopy
			}
			if err != nil {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("copy_of", nil, c.Of)
			return auditlogs.Record(ctx, tx, c.Tenant, auditlog.CampaignCreate, c.ID.String(), d)
		})
	})
}

// longestCopied limits how many characters of its original's name a copy keeps.
const longestCopied = 100
