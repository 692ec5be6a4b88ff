// Package campaigns stores campaigns and their audiences, and books their recipients in chunks.
package campaigns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// Store reads and changes campaigns and their audiences.
type Store struct {
	db     *pg.DB
	pushes *pushes.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, pushes *pushes.Store) *Store {
	return &Store{db: db, pushes: pushes}
}

const campaignColumns = `p.id, p.tenant_id, p.name, p.channel, p.category, p.send_at, p.local_time, p.time_zone, p.spread_s, p.on_conflict, p.latest, p.expires_after_ms,
	p.message, p.metadata, p.status, p.audience_id, p.audience, p.created_at, p.updated_at, p.started_at, p.ended_at,
	p.booked, p.deferred, p.refused, p.opted_out, p.invalid, p.dropped, p.sent, p.failed, p.expired, p.withdrawn, p.segments`

func collectCampaign(row pgx.CollectableRow) (broadcast.Campaign, error) { return scanCampaign(row) }

// scanCampaign reads one row of [campaignColumns], and the columns after them into more. In a campaign that has not ended,
// it counts everything that was booked as scheduled; [Store.fillEnds] corrects that.
func scanCampaign(row pgx.CollectableRow, more ...any) (p broadcast.Campaign, err error) {
	var (
		spread, expires int64
		is              = &p.Progress

		sent, failed, expired, withdrawn, segments *int64 // nil: the campaign has not ended
	)
	err = row.Scan(append([]any{&p.ID, &p.Tenant, &p.Name, &p.Channel, &p.Category, (*zeronull.Timestamptz)(&p.SendAt),
		(*zeronull.Timestamp)(&p.LocalTime), &p.TimeZone, &spread, &p.OnConflict, (*zeronull.Timestamptz)(&p.Latest), &expires,
		(*[]byte)(&p.Message), (*[]byte)(&p.Metadata), (*string)(&p.Status), (*zeronull.UUID)(&p.Audience), &p.Size, &p.CreatedAt, &p.UpdatedAt,
		(*zeronull.Timestamptz)(&p.StartedAt), (*zeronull.Timestamptz)(&p.EndedAt),
		&is.Scheduled, &is.Deferred, &is.Refused, &is.OptedOut, &is.Invalid, &is.Canceled, &sent, &failed, &expired, &withdrawn, &segments}, more...)...)
	p.Spread, p.ExpiresAfter = time.Duration(spread)*time.Second, time.Duration(expires)*time.Millisecond
	is.Audience = p.Size
	is.Pending = p.Size - is.Scheduled - is.Refused - is.OptedOut - is.Invalid - is.Canceled
	if sent != nil {
		is.Scheduled, is.Sent, is.Failed, is.Expired, is.Canceled = 0, *sent, *failed, *expired, is.Canceled+*withdrawn
		if segments != nil {
			p.Segments = *segments
		}
	}
	return p, err
}

// NewCampaign is a campaign to create.
type NewCampaign struct {
	broadcast.Campaign
	RequestHash []byte // hash of a request with an Idempotency-Key, which also determines the id
	Most        int    // maximum number of the tenant's campaigns that have not ended
	Invalid     error  // why the campaign is invalid; ignored if an earlier request has created it
}

// CreateCampaign creates a draft, or finds the campaign that an earlier request with the same Idempotency-Key created. Its
// errors are [broadcast.ErrTooMany], n.Invalid, and [push.ErrKeyReused] if the earlier request differs.
func (s *Store) CreateCampaign(ctx context.Context, n NewCampaign) (p broadcast.Campaign, found bool, err error) {
	err = s.db.Change(ctx, n.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, n.Tenant); err != nil { // one creation at a time
				return err
			}
			if p, found, err = findCampaign(ctx, tx, n); found || err != nil {
				found = found && earlier == 0 // an earlier run may have created it
				return err
			}
			if n.Invalid != nil {
				return n.Invalid
			}
			var others int
			err = tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM campaigns WHERE tenant_id = $1 AND ended_at IS NULL LIMIT $2) c`, n.Tenant, n.Most).Scan(&others)
			if err != nil {
				return err
			}
			if others >= n.Most {
				return broadcast.ErrTooMany
			}
			rows, _ := tx.Query(ctx, `
				INSERT INTO campaigns AS p (id, tenant_id, name, channel, category, send_at, local_time, time_zone, spread_s, on_conflict, latest, expires_after_ms, message, metadata, request_hash)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING `+campaignColumns,
				append(append([]any{n.ID, n.Tenant}, draftArgs(&n.Campaign)...), n.RequestHash)...)
			if p, err = pgx.CollectExactlyOneRow(rows, collectCampaign); err != nil {
				return err
			}
			return auditlogs.Record(ctx, tx, p.Tenant, auditlog.CampaignCreate, p.ID.String(), campaignChanged(broadcast.Campaign{}, p))
		})
	})
	return p, found, err
}

// draftArgs returns the columns that a caller writes, from name to metadata.
func draftArgs(p *broadcast.Campaign) []any {
	return []any{
		p.Name, p.Channel, p.Category, zeronull.Timestamptz(p.SendAt), zeronull.Timestamp(p.LocalTime), p.TimeZone, int64(p.Spread / time.Second), p.OnConflict,
		zeronull.Timestamptz(p.Latest), p.ExpiresAfter.Milliseconds(), []byte(p.Message), nullable(p.Metadata),
	}
}

// campaignChanged returns the difference that the audit log records. It shows only that message and metadata changed, not
// their texts.
func campaignChanged(old, p broadcast.Campaign) auditlogs.Difference {
	d := auditlogs.Difference{}
	d.Show("name", old.Name, p.Name)
	d.Show("channel", old.Channel, p.Channel)
	d.Show("category", old.Category, p.Category)
	d.Show("send_at", old.SendAt, p.SendAt)
	d.Show("local_time", localText(old.LocalTime), localText(p.LocalTime))
	d.Show("time_zone", old.TimeZone, p.TimeZone)
	d.Show("spread", shown(old.Spread), shown(p.Spread))
	d.Show("on_conflict", old.OnConflict, p.OnConflict)
	d.Show("latest", old.Latest, p.Latest)
	d.Show("expires_after", shown(old.ExpiresAfter), shown(p.ExpiresAfter))
	d.Hide("message", old.Message, p.Message)
	d.Hide("metadata", old.Metadata, p.Metadata)
	return d
}

// localText formats a time without a zone; "" for the zero time.
func localText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02T15:04:05")
}

// shown formats a duration; "" for 0.
func shown(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func nullable(text json.RawMessage) []byte {
	if text == nil {
		return nil
	}
	return text
}

// findCampaign returns the campaign that an earlier request created, if any.
func findCampaign(ctx context.Context, tx pgx.Tx, n NewCampaign) (p broadcast.Campaign, found bool, err error) {
	var hash []byte
	rows, _ := tx.Query(ctx, `SELECT `+campaignColumns+`, p.request_hash FROM campaigns p WHERE id = $1`, n.ID)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (broadcast.Campaign, error) { return scanCampaign(row, &hash) })
	switch {
	case err != nil || len(all) == 0:
		return p, false, err
	case all[0].Tenant != n.Tenant || !bytes.Equal(hash, n.RequestHash):
		return p, false, push.ErrKeyReused
	}
	return all[0], true, nil
}

// Campaign returns a tenant's campaign, or [push.ErrNotFound].
func (s *Store) Campaign(ctx context.Context, tenant, id uuid.UUID) (p broadcast.Campaign, err error) {
	err = s.db.Snapshot(ctx, tenant, func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT `+campaignColumns+` FROM campaigns p WHERE id = $1 AND tenant_id = $2`, id, tenant)
		if p, err = pgx.CollectExactlyOneRow(rows, collectCampaign); err != nil {
			return err
		}
		return s.fillEnds(ctx, tx, &p)
	})
	return p, err
}

// Campaigns returns up to limit of a tenant's campaigns after a position, newest first; the zero position is before the
// first. An empty status selects all. As with [pushes.Store.List], there may be fewer although Next is set.
func (s *Store) Campaigns(ctx context.Context, tenant uuid.UUID, status broadcast.Status, after broadcast.Position, limit int) (page broadcast.Page, err error) {
	if after.ID == uuid.Nil {
		after.CreatedAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	q := pg.PageQuery{
		Limit: limit, Scan: limit + 1, Item: "SELECT * FROM campaigns WHERE id = s.id", Columns: campaignColumns, Position: "p.created_at, p.id", Order: "p.created_at DESC, p.id DESC",
		Backward: "p.created_at, p.id", Size: `octet_length(p.message::text) + coalesce(octet_length(p.metadata::text), 0) + 1000`,
		Args: []any{tenant, after.CreatedAt, after.ID},
	}
	fits := `true`
	if status != "" {
		q.Args, q.Scan, fits = append(q.Args, string(status)), pg.MaxScanned, `p.status = $4`
	}
	q.Scanned = fmt.Sprintf(`SELECT p.id, p.created_at, %s AS fits FROM campaigns p WHERE p.tenant_id = $1 AND (p.created_at, p.id) < ($2, $3) ORDER BY p.created_at DESC, p.id DESC LIMIT %d`, fits, q.Scan)
	position := func(p broadcast.Campaign) broadcast.Position {
		return broadcast.Position{CreatedAt: p.CreatedAt, ID: p.ID}
	}
	err = s.db.Snapshot(ctx, tenant, func(ctx context.Context, tx pgx.Tx) error {
		var last broadcast.Position
		rows, _ := tx.Query(ctx, q.SQL(), q.Args...)
		all, next, _, err := pg.CollectPage(rows, q, &last, []any{&last.CreatedAt, &last.ID}, position, scanCampaign)
		for i := range all {
			if err == nil {
				err = s.fillEnds(ctx, tx, &all[i])
			}
		}
		page = broadcast.Page{Campaigns: all, Next: next}
		return err
	})
	return page, err
}

// ChangeDraft changes a caller's draft to a changed one, whose change was checked. The errors are the fault of the change,
// [ErrChanged], [push.ErrNotFound], [*broadcast.StateError], [*push.ScopeError] and, if something would change,
// [*push.StaleError].
func (s *Store) ChangeDraft(ctx context.Context, by push.Caller, changed broadcast.Campaign, unchanged push.Unchanged, checked Checked) (p broadcast.Campaign, err error) {
	err = s.db.Change(ctx, by.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if p, err = lockOwnDraft(ctx, tx, by, changed.ID, "changed"); err != nil {
				return err
			}
			wrong := checked.of(&p)
			if errors.Is(wrong, ErrChanged) {
				return wrong
			}
			if stale := unchanged.Check(p.UpdatedAt); stale != nil && len(campaignChanged(p, changed)) > 0 { // an earlier run may have made the change
				return stale
			}
			if wrong != nil {
				return wrong
			}
			rows, _ := tx.Query(ctx, `
				UPDATE campaigns p SET name = $2, channel = $3, category = $4, send_at = $5, local_time = $6, time_zone = $7, spread_s = $8, on_conflict = $9, latest = $10,
					expires_after_ms = $11, message = $12, metadata = $13, updated_at = clock_timestamp()
				WHERE id = $1 RETURNING `+campaignColumns, append([]any{p.ID}, draftArgs(&changed)...)...)
			old := p
			if p, err = pgx.CollectExactlyOneRow(rows, collectCampaign); err != nil {
				return err
			}
			d := campaignChanged(old, p)
			if len(d) == 0 {
				return nil
			}
			return auditlogs.Record(ctx, tx, by.Tenant, auditlog.CampaignChange, p.ID.String(), d)
		})
	})
	return p, err
}

// lockDraft locks a campaign with a lock of the given strength. It returns a [*broadcast.StateError] if the campaign is
// not a draft; done completes the text of the error.
func lockDraft(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, strength, done string) (broadcast.Campaign, error) {
	rows, _ := tx.Query(ctx, `SELECT `+campaignColumns+` FROM campaigns p WHERE id = $1 AND tenant_id = $2 FOR `+strength, id, tenant)
	p, err := pgx.CollectExactlyOneRow(rows, collectCampaign)
	if err == nil && p.Status != broadcast.Draft {
		return p, &broadcast.StateError{Campaign: p, Detail: fmt.Sprintf("the campaign is %s; it can only be %s while it is a draft", p.Status, done)}
	}
	return p, err
}

// DeleteDraft removes a draft that is not the pattern of a schedule. Its audience is swept later. The errors are
// [push.ErrNotFound] and [*broadcast.StateError].
func (s *Store) DeleteDraft(ctx context.Context, tenant, id uuid.UUID) error {
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			p, err := lockDraft(ctx, tx, tenant, id, "UPDATE", "deleted")
			if err != nil {
				return err
			}
			if err := patternOfNone(ctx, tx, p); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE campaign_uploads SET ended = true WHERE campaign_id = $1`, id); err != nil {
				return err
			}
			if _, err = tx.Exec(ctx, `DELETE FROM campaigns WHERE id = $1`, id); err != nil {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("name", p.Name, nil)
			return auditlogs.Record(ctx, tx, tenant, auditlog.CampaignDelete, id.String(), d)
		})
		if earlier > 0 && errors.Is(err, pgx.ErrNoRows) { // an earlier run may have deleted it
			return nil
		}
		return err
	})
}
