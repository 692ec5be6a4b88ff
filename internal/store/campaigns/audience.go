package campaigns

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
)

// An audience is uploaded in portions under an id of its own, and becomes the campaign's audience at the end, in one
// transaction. Abandoned uploads and replaced audiences are swept.

// uploadLease limits how long an upload may pause before it counts as abandoned: much longer than a caller may take for
// one portion.
const uploadLease = 10 * time.Minute

// Upload is an audience that is being uploaded.
type Upload struct {
	ID, Campaign uuid.UUID
	By           push.Caller
	Most         int // maximum bytes of all audiences of the tenant; 0: no maximum
}

// BeginUpload begins an upload for a caller. Its errors are [push.ErrNotFound], [*broadcast.StateError] and
// [*push.ScopeError].
func (s *Store) BeginUpload(ctx context.Context, by push.Caller, campaign uuid.UUID) (u Upload, err error) {
	u = Upload{ID: uuid.Must(uuid.NewV7()), Campaign: campaign, By: by}
	err = s.db.Change(ctx, by.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := lockOwnDraft(ctx, tx, by, campaign, audienceGiven); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO campaign_uploads (id, tenant_id, campaign_id, alive_until) VALUES ($1, $2, $3, clock_timestamp() + $4::interval) ON CONFLICT DO NOTHING`,
				u.ID, by.Tenant, campaign, uploadLease)
			return err
		})
	})
	return u, err
}

// audienceGiven describes an upload in the text of a [broadcast.StateError].
const audienceGiven = "given an audience"

const (
	keepUploadSQL = `UPDATE campaign_uploads SET alive_until = clock_timestamp() + $2::interval, bytes = bytes + $3 WHERE id = $1 AND NOT ended RETURNING true`

	// addLinesSQL stores lines. Of several lines for one recipient it keeps the first.
	addLinesSQL = `
	INSERT INTO campaign_recipients (shard, audience_id, tenant_id, campaign_id, recipient_key, recipient, line, address, variables)
	SELECT n.recipient_key & 255, $1, $2, $3, n.recipient_key, n.recipient, n.line, n.address, n.variables::json
	FROM unnest($4::bigint[], $5::text[], $6::int[], $7::text[], $8::text[]) AS n (recipient_key, recipient, line, address, variables)
	ORDER BY n.line
	ON CONFLICT DO NOTHING`

	// addedSQL counts how many of these lines an earlier run has stored.
	addedSQL = `SELECT count(*) FROM campaign_recipients WHERE audience_id = $1 AND line = ANY ($2::int[])`
)

// AddLines stores lines of an upload and returns how many it stored; lines of recipients that were already stored are
// skipped. If the upload is gone, with its campaign, the error is [push.ErrNotFound]. If the tenant's audiences would have
// too many bytes, it is a [*booking.Capped]; concurrent uploads do not count each other's last portion.
func (s *Store) AddLines(ctx context.Context, u Upload, lines []broadcast.AudienceLine) (int, error) {
	if !s.db.ByShard() {
		return s.addLines(ctx, u, lines)
	}
	var (
		parts errgroup.Group
		added atomic.Int64
	)
	parts.SetLimit(pushes.TenantTransactions)
	for part := range pg.ByLane(lines, s.db.Cfg.Lanes, func(l broadcast.AudienceLine) int64 { return push.RecipientKey(u.By.Tenant, l.Recipient) }) {
		parts.Go(func() error {
			these := make([]broadcast.AudienceLine, len(part))
			for n, i := range part {
				these[n] = lines[i]
			}
			n, err := s.addLines(ctx, u, these)
			added.Add(int64(n))
			return err
		})
	}
	err := parts.Wait()
	return int(added.Load()), err
}

// addLines stores lines in one transaction.
func (s *Store) addLines(ctx context.Context, u Upload, lines []broadcast.AudienceLine) (added int, err error) {
	var (
		keys                             = make([]int64, len(lines))
		recipients, addresses, variables = make([]string, len(lines)), make([]string, len(lines)), make([]*string, len(lines))
		numbers                          = make([]int32, len(lines))
	)
	bytes := 0
	for i, l := range lines {
		bytes += l.Bytes()
		keys[i], recipients[i], addresses[i], numbers[i] = push.RecipientKey(u.By.Tenant, l.Recipient), l.Recipient, l.To, int32(l.Line)
		if l.Variables != nil {
			variables[i] = new(string(l.Variables))
		}
	}
	err = s.db.Change(ctx, u.By.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			before, more := 0, bytes
			if earlier > 0 { // an earlier run may have been committed
				if err := tx.QueryRow(ctx, addedSQL, u.ID, numbers).Scan(&before); err != nil {
					return err
				}
			}
			if before > 0 {
				more = 0
			}
			var kept bool
			if err := tx.QueryRow(ctx, keepUploadSQL, u.ID, uploadLease, more).Scan(&kept); err != nil {
				return err
			}
			if err := bytesFit(ctx, tx, u.By.Tenant, u.Most); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, addLinesSQL, u.ID, u.By.Tenant, u.Campaign, keys, recipients, numbers, addresses, variables)
			added = before + int(tag.RowsAffected())
			return err
		})
	})
	return added, err
}

const audienceBytesSQL = `SELECT coalesce(sum(bytes), 0)::bigint FROM campaign_uploads WHERE tenant_id = $1`

// AudienceBytes returns the size in bytes of a tenant's audiences, as its cap counts them.
func (s *Store) AudienceBytes(ctx context.Context, tenant uuid.UUID) (used int, err error) {
	err = s.db.ReadPool.QueryRow(ctx, audienceBytesSQL, tenant).Scan(&used)
	return used, err
}

// bytesFit returns a [*booking.Capped] if a tenant's audiences have more bytes than most, unless most is 0. Replaced and
// abandoned audiences count until they are swept, because they still occupy the disk.
func bytesFit(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, most int) error {
	if most == 0 {
		return nil
	}
	var used int
	err := tx.QueryRow(ctx, audienceBytesSQL, tenant).Scan(&used)
	if err == nil && used > most {
		err = &booking.Capped{Cap: booking.AudienceBytes, Limit: most, Used: used}
	}
	return err
}

// EndUpload makes the upload, with its number of lines, the audience of the campaign. It returns the same errors as
// [Store.BeginUpload]: by now the campaign may no longer be a draft, or may be the pattern of a schedule.
func (s *Store) EndUpload(ctx context.Context, u Upload, lines int64) (p broadcast.Campaign, err error) {
	err = s.db.Change(ctx, u.By.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if p, err = lockOwnDraft(ctx, tx, u.By, u.Campaign, audienceGiven); err != nil || p.Audience == u.ID {
				return err // an earlier run has ended the upload
			}
			var kept bool
			if err := tx.QueryRow(ctx, `UPDATE campaign_uploads SET alive_until = 'infinity' WHERE id = $1 AND NOT ended RETURNING true`, u.ID).Scan(&kept); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE campaign_uploads SET ended = true WHERE id = $1`, p.Audience); err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, `UPDATE campaigns p SET audience_id = $2, audience = $3, updated_at = clock_timestamp() WHERE id = $1 RETURNING `+campaignColumns,
				u.Campaign, u.ID, lines)
			old := p.Size
			if p, err = pgx.CollectExactlyOneRow(rows, collectCampaign); err != nil {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("recipients", old, lines)
			return auditlogs.Record(ctx, tx, u.By.Tenant, auditlog.CampaignAudience, u.Campaign.String(), d)
		})
	})
	return p, err
}

// DropUpload abandons an upload. If it fails, the upload counts as abandoned when its lease expires.
func (s *Store) DropUpload(ctx context.Context, u Upload) error {
	return s.db.Change(ctx, u.By.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `UPDATE campaign_uploads SET ended = true WHERE id = $1 AND alive_until < 'infinity'`, u.ID)
		return err
	})
}

// SweepUploads removes up to limit lines of uploads that were abandoned or replaced, or that belong to deleted campaigns.
// It returns how many lines it removed. It also removes uploads without lines, and skips uploads that are being copied.
func (s *Store) SweepUploads(ctx context.Context, _ time.Duration, limit int) (n int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		if _, err := c.Exec(ctx, `UPDATE campaign_uploads SET ended = true WHERE NOT ended AND alive_until < clock_timestamp()`); err != nil {
			return err
		}
		n = 0
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			for n < limit {
				var id uuid.UUID
				err := tx.QueryRow(ctx, `SELECT id FROM campaign_uploads u WHERE ended AND NOT EXISTS (SELECT FROM campaign_uploads c WHERE c.copy_of = u.id AND NOT c.ended)
					ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`).Scan(&id)
				if errors.Is(err, pgx.ErrNoRows) {
					return nil
				}
				if err != nil {
					return err
				}
				tag, err := tx.Exec(ctx, `DELETE FROM campaign_recipients WHERE audience_id = $1 AND line <= (
					SELECT max(line) FROM (SELECT line FROM campaign_recipients WHERE audience_id = $1 ORDER BY line LIMIT $2) l)`, id, limit-n)
				if err != nil {
					return err
				}
				if n += int(tag.RowsAffected()); n >= limit {
					return nil
				}
				if _, err := tx.Exec(ctx, `DELETE FROM campaign_uploads WHERE id = $1`, id); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return n, err
}

// KnownLine is a line of an audience with its recipient's description.
type KnownLine struct {
	broadcast.AudienceLine
	Attributes []byte // a JSON object, or nil
	TimeZone   string // empty: not known
}

// knownLinesSQL reads lines l of an audience, with their recipients' attributes and zones.
const knownLinesSQL = `
	SELECT l.line, l.recipient, l.address, l.variables, r.attributes, coalesce(r.time_zone, '')
	FROM campaign_recipients l LEFT JOIN recipients r
		ON r.shard = l.shard AND r.recipient_key = l.recipient_key AND r.tenant_id = l.tenant_id AND r.recipient = l.recipient
	WHERE l.audience_id = $1 AND l.recipient <> '' AND `

// Lines returns the first lines of a campaign's audience, up to limit, or if recipient is not empty, the line of that
// recipient. Lines of erased recipients are left out.
func (s *Store) Lines(ctx context.Context, p *broadcast.Campaign, recipient string, limit int) ([]KnownLine, error) {
	if recipient == "" {
		return s.knownLines(ctx, p, `true ORDER BY l.line LIMIT $2`, limit)
	}
	key := push.RecipientKey(p.Tenant, recipient)
	return s.knownLines(ctx, p, `l.shard = ANY ($5::smallint[]) AND l.recipient_key = $4 AND l.recipient = $3 LIMIT $2`, limit, recipient, key, []int16{int16(push.Shard(key))})
}

// LongestLines returns the lines of a campaign's audience with the longest variables, longest first, up to limit. It reads
// the whole audience: a million lines take seconds.
func (s *Store) LongestLines(ctx context.Context, p *broadcast.Campaign, limit int) ([]KnownLine, error) {
	return s.knownLines(ctx, p, `l.line IN (
		SELECT line FROM campaign_recipients WHERE audience_id = $1 AND recipient <> '' ORDER BY octet_length(variables::text) DESC NULLS LAST, line LIMIT $2)
		ORDER BY octet_length(l.variables::text) DESC NULLS LAST, l.line`, limit)
}

func (s *Store) knownLines(ctx context.Context, p *broadcast.Campaign, which string, args ...any) (all []KnownLine, err error) {
	args = append([]any{p.Audience}, args...)
	err = s.db.Read(ctx, p.Tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, knownLinesSQL+which, args...)
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l KnownLine, err error) {
			err = row.Scan(&l.Line, &l.Recipient, &l.To, (*[]byte)(&l.Variables), &l.Attributes, &l.TimeZone)
			l.Variables, l.Attributes = slices.Clone(l.Variables), slices.Clone(l.Attributes)
			return l, err
		})
		return err
	})
	return all, err
}
