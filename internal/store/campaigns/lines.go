package campaigns

import (
	"context"
	"encoding/json"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// undecidedSQL reads the next undecided recipients of a campaign. The statement that locks them follows the one that locks
// their campaign, so no concurrent transaction can decide them.
var undecidedSQL, undecidedPlacesSQL = undecided(`recipient_key, recipient, line, address, variables`), undecided(`recipient_key, recipient`)

func undecided(columns string) string {
	return `
	SELECT ` + columns + ` FROM campaign_recipients
	WHERE {shard} audience_id = $1 AND shard BETWEEN $2 AND $3 AND (shard, recipient_key, recipient) > ($4, $5, $6) AND outcome IS NULL
	ORDER BY shard, recipient_key, recipient LIMIT $7`
}

// NextUndecided returns the shard of the next undecided recipient of a campaign after a place, if there is one. If each
// shard is a lane, a small campaign has no recipients in most lanes, and a caller skips those.
func (s *Runs) NextUndecided(ctx context.Context, c broadcast.Campaign, after Position) (shard int, found bool, err error) {
	all, err := pg.Collect(ctx, s.db, pgx.RowTo[int], `
		SELECT shard FROM campaign_recipients
		WHERE audience_id = $1 AND (shard, recipient_key, recipient) > ($2, $3, $4) AND outcome IS NULL ORDER BY shard, recipient_key, recipient LIMIT 1`,
		c.Audience, after.Shard, after.Key, after.Recipient)
	if err != nil || len(all) == 0 {
		return 0, false, err
	}
	return all[0], true, nil
}

// The limits of one chunk: lines, and bytes of their variables.
const (
	chunkLines = 250
	chunkBytes = 8 << 20
)

// Line is an undecided line.
type Line struct {
	broadcast.AudienceLine
	Key    int64 // of the recipient
	Erased bool  // the recipient was erased, and gets nothing
}

// Position returns the position of the line's recipient.
func (l *Line) Position() Position { return Position{push.Shard(l.Key), l.Key, l.Recipient} }

// Lines are the next undecided lines of a campaign, with all that their pushes are planned by.
type Lines struct {
	All  []Line // in the order of their places
	More bool   // there may be undecided recipients after them

	tenant    uuid.UUID
	terms     booking.Terms // nil: the tenant has no policy of its own
	version   int64         // of the terms
	described bool          // the tenant may have described recipients
	people    terms.People
}

// Standing returns what is known about the recipient of a line, and the recipient's attributes, or nil. file holds the
// terms of tenants without a policy of their own.
func (l *Lines) Standing(line *Line, file booking.Terms) (booking.Standing, json.RawMessage) {
	who := quota.Recipient{Tenant: l.tenant, ID: line.Recipient}
	return booking.Standing{Terms: booking.OrNone(l.terms, file), Person: l.people.Found[who]}, l.people.Attributes[who]
}

// querier is a connection for changes or for reads.
type querier interface {
	pg.Querier
	pg.Batcher
}

// Lines reads the next lines without a lock, with their recipients' descriptions.
func (c *Chunk) Lines(ctx context.Context) (l *Lines, err error) {
	db := c.store.db
	if c.trial {
		err = db.Read(ctx, c.part.Campaign.Tenant, func(ctx context.Context, conn pg.Reader) (err error) {
			l, err = c.readLines(ctx, conn)
			return err
		})
	} else {
		err = db.InTx(ctx, func(ctx context.Context, conn *pgxpool.Conn, _ int) (err error) {
			l, err = c.readLines(ctx, conn)
			return err
		})
	}
	c.lines = l
	return l, err
}

func (c *Chunk) readLines(ctx context.Context, conn querier) (*Lines, error) {
	var inForce terms.Read
	used := inForce.Use(&c.store.terms.Known, c.part.Campaign.Tenant)
	l := &Lines{tenant: c.part.Campaign.Tenant, terms: used.Terms, version: used.Version, described: used.Described}
	l.people.WithAttributes = true
	if err := c.readUndecided(ctx, conn, l); err != nil {
		return nil, err
	}
	for i := range l.All {
		if used.Described && !l.All[i].Erased {
			l.people.Add(l.tenant, l.All[i].Key)
		}
	}
	b := &pgx.Batch{}
	inForce.Queue(b).Query(inForce.Collect)
	if len(l.people.Keys) > 0 {
		l.people.Queue(c.store.terms, b).Query(l.people.Collect)
	}
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return l, inForce.Check()
}

// readUndecided reads the next undecided lines.
func (c *Chunk) readUndecided(ctx context.Context, conn querier, l *Lines) error {
	b := &pgx.Batch{}
	queued := c.queueUndecided(b, undecidedSQL, chunkLines)
	rows, err := conn.Query(ctx, queued.SQL, queued.Arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		if size > chunkBytes {
			l.More = true
			return nil
		}
		var line Line
		if err := rows.Scan(&line.Key, &line.Recipient, &line.Line, &line.To, (*[]byte)(&line.Variables)); err != nil {
			return err
		}
		line.Erased = line.Recipient == ""
		l.All, size = append(l.All, line), size+len(line.Variables)
	}
	l.More = len(l.All) == chunkLines
	return rows.Err()
}

// queueUndecided adds a query for the next undecided recipients to a batch.
func (c *Chunk) queueUndecided(b *pgx.Batch, sql string, limit int) *pgx.QueuedQuery {
	shards, after := c.part.Shards, c.part.After
	return b.Queue(pg.InShard(sql, "$2::bigint", shards), c.part.Campaign.Audience, shards.First, shards.Last, after.Shard, after.Key, after.Recipient, limit)
}
