package campaigns

import (
	"bytes"
	"context"
	"errors"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
)

// Part selects recipients of a campaign, in the order of shards and keys.
type Part struct {
	Campaign broadcast.Campaign
	Shards   push.Lane // within one lane of the store: see [Runs.CampaignLanes]
	After    Position  // only recipients after this position
}

// Position is a place in the order of a campaign's recipients. The zero value is before all recipients of a lane that begins
// with shard 0; see [BeforeShards].
type Position struct {
	Shard     int
	Key       int64
	Recipient string
}

// BeforeShards returns the position before the recipients of some shards.
func BeforeShards(shards push.Lane) Position {
	return Position{Shard: shards.First - 1}
}

// CampaignLanes returns the ranges of shards within which each chunk must be.
func (s *Runs) CampaignLanes() []push.Lane { return push.Lanes(s.db.Cfg.Lanes) }

// Chunk is the transaction that decides the next undecided recipients of a starting campaign. The caller takes its steps:
// Lines, Lock, Read, Write, and Again at the end of each run. Lines are read and planned without a lock; Lock and Read
// check that they are as they were. Write commits outcomes and pushes together, so each recipient is decided once, even
// if several workers try, or one repeats the run.
//
// A trial takes the same steps for a campaign in any state, but locks and writes nothing. A Chunk is not safe for
// concurrent use.
type Chunk struct {
	store   *Runs
	part    Part
	trial   bool
	tries   *pg.Tries
	cancel  context.CancelFunc
	session *pg.Session         // of this run; nil: none
	lines   *Lines              // of this run
	order   booking.Order       // of this run
	read    *pushes.BookingRead // of this run
}

// CampaignChunk returns a new chunk, and the context of its steps, which ends with the store's limit of time.
func (s *Runs) CampaignChunk(ctx context.Context, part Part) (*Chunk, context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	return &Chunk{store: s, part: part, tries: s.db.Tries(), cancel: cancel}, ctx
}

// CampaignTrial returns a new trial, and the context of its steps.
func (s *Runs) CampaignTrial(ctx context.Context, part Part) (*Chunk, context.Context) {
	c, ctx := s.CampaignChunk(ctx, part)
	c.trial = true
	return c, ctx
}

// ErrReadMore reports that a recipient has many bookings, or no free time for days. The process has noted the first; repeat
// the second with drafts that look further.
var ErrReadMore = pushes.ErrReadMore

// errChanged reports that lines, or descriptions of their recipients, have changed since Lines has read them.
var errChanged = errors.New("the lines have changed since they were read")

// Again ends a run that has failed with an error, or has succeeded. It reports whether to run all steps again, and returns
// the error otherwise: [ErrReadMore] means that a new chunk reads more bookings.
func (c *Chunk) Again(ctx context.Context, err error) (again bool, failed error) {
	if c.session != nil {
		if c.read != nil && c.read.Results != nil {
			_ = c.read.Close()
		}
		c.session.End(ctx, err)
	}
	c.session, c.read = nil, nil
	if errors.Is(err, errChanged) && ctx.Err() == nil {
		return true, nil
	}
	if again, failed = c.tries.Again(ctx, err); !again {
		c.cancel()
	}
	return again, failed
}

// Lock locks the campaign, then the planned lines, then the recipients of the order, and returns the campaign's status.
// Unless the campaign is starting, end the run. A concurrent erasure of a recipient waits for the lines' rows, and then
// finds the push.
func (c *Chunk) Lock(ctx context.Context, planned []Decided, o booking.Order) (status broadcast.Status, err error) {
	c.order, c.read = o, c.store.pushes.NewBookingRead(ordersOf(o), false, pushes.OwnRows)
	c.read.Begun, c.read.People.WithAttributes = true, true
	c.store.pushes.Crowds.Whole(c.read)
	if c.trial {
		return broadcast.Starting, c.beginTrial(ctx)
	}
	if c.session, err = c.store.db.Session(ctx); err != nil {
		return "", err
	}
	var places []Position
	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed`)
	b.Queue(`SELECT status FROM campaigns WHERE id = $1 FOR NO KEY UPDATE`, c.part.Campaign.ID).QueryRow(func(row pgx.Row) error {
		return row.Scan((*string)(&status))
	})
	if len(planned) > 0 {
		c.queueUndecided(b, undecidedPlacesSQL+` FOR UPDATE`, len(planned)).Query(func(rows pgx.Rows) error {
			places, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Position, err error) {
				err = row.Scan(&p.Key, &p.Recipient)
				p.Shard = push.Shard(p.Key)
				return p, err
			})
			return err
		})
	}
	if len(c.read.Locks) > 0 {
		c.store.db.Locking(false).Queue(b, c.read.Locks)
	}
	if err := c.session.SendBatch(ctx, b).Close(); err != nil || status != broadcast.Starting {
		return status, err
	}
	return status, samePositions(places, planned)
}

// beginTrial begins a transaction that only reads.
func (c *Chunk) beginTrial(ctx context.Context) (err error) {
	if c.session, err = c.store.db.ReadSession(ctx, c.part.Campaign.Tenant); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed read only`)
	b.Queue(pg.ReadSettingsSQL, pg.Milliseconds(c.store.db.Cfg.ReadTimeout))
	return c.session.SendBatch(ctx, b).Close()
}

// samePositions returns errChanged unless the next undecided recipients are the planned ones.
func samePositions(places []Position, planned []Decided) error {
	if len(places) != len(planned) {
		return errChanged
	}
	for i := range places {
		if places[i] != planned[i].Position() {
			return errChanged
		}
	}
	return nil
}

// Read reads a snapshot for a decision about the order of Lock. It reads bookings when the decider asks for their views.
func (c *Chunk) Read(ctx context.Context) (booking.Snapshot, error) {
	snapshot, err := c.read.Snapshot(ctx, c.store.pushes, c.session.Conn, c.store.db.Locking(false), false)
	if err != nil {
		return snapshot, err
	}
	tenant := c.part.Campaign.Tenant
	used, drafts := c.read.Terms.Used[tenant]
	switch {
	case drafts && (used.Version != c.lines.version || used.Described != c.lines.described):
		return snapshot, &terms.OtherTermsError{Known: &c.store.terms.Known, Tenants: []uuid.UUID{tenant}}
	case !used.Deleting && !c.samePeople():
		return snapshot, errChanged
	}
	return snapshot, nil
}

// samePeople reports whether the recipients of the order are described as they were when their lines were read, as far as
// their pushes are planned by that.
func (c *Chunk) samePeople() bool {
	planned, now := c.lines.people, &c.read.People
	for i := range c.order.Drafts {
		who := c.order.Drafts[i].Recipient()
		if planned.Found[who].Zone != now.Found[who].Zone || !bytes.Equal(planned.Attributes[who], now.Attributes[who]) {
			return false
		}
	}
	return true
}

// ordersOf returns a list with the order, or nil if it has no drafts.
func ordersOf(o booking.Order) []booking.Order {
	if len(o.Drafts) == 0 {
		return nil
	}
	return []booking.Order{o}
}
