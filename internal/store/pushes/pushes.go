package pushes

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// joinPause joins a due push with the pause that has parked it, or with the pause of its campaign.
var joinPause = ` LEFT JOIN LATERAL (
		(SELECT greatest(c.paused_at, p.next_at) AS since, '` + push.PausedCampaign + `' AS by, NULL::timestamptz AS until FROM campaigns c
		WHERE p.status = 'scheduled' AND p.next_at <= statement_timestamp() AND c.id = p.campaign_id AND c.status IN ('pausing', 'paused')
		UNION ALL
		SELECT greatest(z.created_at, p.next_at), '` + push.PausedBy + `' || z.scope, z.until FROM live l, pauses z
		WHERE p.status = 'scheduled' AND p.next_at <= statement_timestamp() AND z.id = l.pause_id AND z.ended_at IS NULL
			AND l.shard = p.shard AND l.recipient_key = p.recipient_key AND l.send_at = p.send_at AND l.push_id = p.id)
		LIMIT 1 -- also keeps the first conditions where they cost nothing
	) pause ON true`

// joinLive joins a push with its row in live, which a push that has ended lacks. shard is the right side of a comparison
// with the shard.
func joinLive(shard string) string {
	return `LEFT JOIN live l ON l.shard = ` + shard + ` AND l.recipient_key = ANY (ARRAY[p.recipient_key]) AND l.send_at = p.send_at AND l.push_id = p.id`
}

// joinAttempt joins a push that is only shown with its row in live, but only if an attempt may be under way: the push has
// not ended and its time has come. Each such row may cost a page that Postgres has to read from disk, and without an
// attempt, pushes holds everything that live does.
func joinAttempt(shard string) string {
	return `LEFT JOIN LATERAL (
		SELECT token, attempts, started_at FROM live l
		WHERE p.status = 'scheduled' AND p.send_at <= statement_timestamp()
			AND l.shard = ` + shard + ` AND l.recipient_key = p.recipient_key AND l.send_at = p.send_at AND l.push_id = p.id
		OFFSET 0 -- keeps the first conditions where they cost nothing
	) l ON true`
}

// underWay returns a condition: an attempt of push p is under way.
func underWay(shard string) string {
	return `EXISTS (
	SELECT FROM live l WHERE l.shard = ` + shard + ` AND l.recipient_key = ANY (ARRAY[p.recipient_key]) AND l.send_at = p.send_at
		AND l.push_id = p.id AND l.token IS NOT NULL)`
}

// Push returns a tenant's push with its sends, or [push.ErrNotFound].
func (s *Store) Push(ctx context.Context, tenant, id uuid.UUID) (p push.Push, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		p, err = s.readPush(ctx, c, tenant, id)
		return err
	})
	return p, err
}

// byIDSQL reads pushes by id in some shards, of one tenant or of all, with the begin of the first attempt and the first
// and latest push of the chain of retries.
var byIDSQL = `SELECT ` + heldColumns + `, coalesce(p.attempted_at, p.created_at), p.retry_first, p.retry_latest
	FROM {pushes} p ` + joinLive(`ANY ($2::smallint[])`) + joinPause + ` WHERE p.shard = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[])
		AND ($3::uuid IS NULL OR p.tenant_id = $3)`

// attempted is a push with the begin of its first attempt, or without an attempt, the time of its creation.
type attempted struct {
	push.Push
	Since time.Time
}

// Ref identifies a push to find, by id and shard.
type Ref struct {
	id    uuid.UUID
	shard int16
}

// RefOf returns the [Ref] for a push of a recipient.
func RefOf(id uuid.UUID, recipientKey int64) Ref {
	return Ref{id, int16(push.Shard(recipientKey))}
}

// Search is a table to search for pushes, with their ids and shards.
type Search struct {
	Table  string
	IDs    []uuid.UUID
	Shards []int16
}

// searchOf returns the [Search] for finding pushes in a table.
func searchOf(table string, of []Ref) Search {
	p := Search{Table: table}
	for _, one := range of {
		p.IDs, p.Shards = append(p.IDs, one.id), append(p.Shards, one.shard)
	}
	slices.Sort(p.Shards)
	p.Shards = slices.Compact(p.Shards)
	return p
}

// FindPushes calls ask with the tables to search for pushes. It begins with the week that each id names, the week of the
// first booked send time, and searches all weeks for the pushes that ask did not find. Few callers search all weeks at a
// time, because that locks every table.
func (s *Store) FindPushes(ctx context.Context, all []Ref, ask func([]Search) (found []uuid.UUID, err error)) error {
	pushes := s.db.Layouts.Pushes()
	hinted := map[string][]Ref{}
	for _, one := range all {
		week := push.WeekOf(one.id)
		for _, table := range pushes.Between(week, week) {
			hinted[table] = append(hinted[table], one)
		}
	}
	var searches []Search
	for table, some := range hinted {
		searches = append(searches, searchOf(table, some))
	}
	found, err := ask(searches)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(one Ref) bool { return slices.Contains(found, one.id) })
	if len(left) == 0 {
		return nil
	}
	if err := s.db.Walks.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.db.Walks.Release(1)
	_, err = ask([]Search{searchOf(pushes.Parent, left)})
	return err
}

// ReadPushes returns the sought pushes that exist.
func (s *Store) ReadPushes(ctx context.Context, c pg.Batcher, all []Ref) (pushes []attempted, err error) {
	return s.readPushesOf(ctx, c, uuid.Nil, all)
}

// readPushesOf returns the sought pushes of a tenant; Nil: of any tenant. The search for another tenant's push takes as
// long as the search for one that does not exist, so that timing does not reveal which it is.
func (s *Store) readPushesOf(ctx context.Context, c pg.Batcher, tenant uuid.UUID, all []Ref) (pushes []attempted, err error) {
	err = s.FindPushes(ctx, all, func(searches []Search) (found []uuid.UUID, err error) {
		b := &pgx.Batch{}
		for _, p := range searches {
			b.Queue(pg.In(s.db.Joining(byIDSQL), "{pushes}", p.Table), p.IDs, p.Shards, zeronull.UUID(tenant))
		}
		read, err := collectPushes(ctx, c, b)
		for _, p := range read {
			found = append(found, p.ID)
		}
		pushes = append(pushes, read...)
		return found, err
	})
	return pushes, err
}

func collectPushes(ctx context.Context, c pg.Batcher, b *pgx.Batch) (pushes []attempted, err error) {
	res := c.SendBatch(ctx, b)
	defer res.Close()
	for range b.Len() {
		rows, _ := res.Query()
		pushes, err = pgx.AppendRows(pushes, rows, func(row pgx.CollectableRow) (p attempted, err error) {
			var first, latest zeronull.UUID
			p.Push, err = ScanPush(row, &p.Since, &first, &latest)
			p.Retry.First, p.Retry.Latest = uuid.UUID(first), uuid.UUID(latest)
			return p, err
		})
		if err != nil {
			return nil, err
		}
	}
	return pushes, nil
}

// sendsSQL reads the ended attempts of a push.
const sendsSQL = `SELECT attempt, started_at, ended_at, outcome, provider_message_id, error, coalesce(segments, 0) FROM {sends} s
	WHERE s.shard = ANY ($2::smallint[]) AND push_id = $1 AND ended_at IS NOT NULL ORDER BY 1`

func (s *Store) readPush(ctx context.Context, c pg.Batcher, tenant, id uuid.UUID) (push.Push, error) {
	found, err := s.readPushesOf(ctx, c, tenant, []Ref{{id, int16(push.ShardOf(id))}})
	if err != nil {
		return push.Push{}, err
	}
	if len(found) == 0 || erased(found[0].Push) {
		return push.Push{}, push.ErrNotFound
	}
	p, ended := found[0], found[0].Attempts
	p.Sends = []push.Send{}
	if p.Status == push.Sending {
		ended--
	}
	if tables := s.db.Layouts.Sends().All(p.Since, p.UpdatedAt); ended > 0 {
		b := &pgx.Batch{}
		b.Queue(pg.In(sendsSQL, "{sends}", tables...), id, pg.ShardsOf(push.RecipientKey(tenant, p.Recipient)))
		res := c.SendBatch(ctx, b)
		defer res.Close()
		rows, _ := res.Query()
		if p.Sends, err = pgx.CollectRows(rows, pgx.RowToStructByPos[push.Send]); err != nil {
			return push.Push{}, err
		}
	}
	if n := len(p.Sends); p.Status == push.Sending && (n == 0 || p.Sends[n-1].Attempt < p.Attempts) {
		p.Sends = append(p.Sends, push.Send{Attempt: p.Attempts, StartedAt: p.UpdatedAt})
	}
	return p.Push, nil
}

// ErasedReason replaces the errors of an erased recipient, because they may quote an address.
const ErasedReason = `'erased'`

// UnlessErased returns an expression for an attempt's text that becomes [ErasedReason] if the recipient was erased.
func UnlessErased(text, recipient string) string {
	return `CASE WHEN ` + recipient + ` = '' AND ` + text + ` <> '' THEN ` + ErasedReason + ` ELSE ` + text + ` END`
}

// erased reports whether the recipient of a push was erased.
func erased(p push.Push) bool { return p.ID != uuid.Nil && p.Recipient == "" }
