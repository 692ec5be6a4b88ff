package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// How much is decided in one chunk: so many recipients, or fewer where their lines or messages are large or slow to make.
const (
	chunkLines = 250
	chunkBytes = 8 << 20
	planTime   = time.Second
)

// CampaignChunk asks to decide some recipients of a campaign: the next ones, in the order of shards and keys, that are
// not decided yet.
type CampaignChunk struct {
	Campaign push.Campaign
	Shards   push.Lane     // in one lane of the store: see [Runs.CampaignLanes]
	After    CampaignPlace // only those behind it
	File     booking.Terms // of a tenant without a policy of its own
	Now      time.Time     // see [booking.Order]

	// Plan says what a line asks for; an error says what is invalid about it. Attributes are the recipient's, or nil.
	Plan func(line push.CampaignLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error)

	// Room says how much of the tenant's caps is used when drafts are to be decided; nil: the tenant has no caps.
	Room func(ctx context.Context, drafts []booking.Draft) (*booking.CapUsage, error)

	// Look is shown the bookings of each recipient right before the decision; nil: nobody looks.
	Look func(who quota.Recipient, of booking.Standing, view quota.View)

	far map[string]bool // recipients whose next free time is days away
}

// CampaignPlace is a place in the order of a campaign's recipients. The zero value is before all of a lane that begins with
// shard 0; see [BeforeShards].
type CampaignPlace struct {
	Shard     int
	Key       int64
	Recipient string
}

// BeforeShards is the place before the recipients of some shards.
func BeforeShards(shards push.Lane) CampaignPlace {
	return CampaignPlace{Shard: shards.First - 1}
}

// CampaignDecided is what became of a line.
type CampaignDecided struct {
	Line push.CampaignLine
	Key  int64 // of the recipient

	Erased   bool             // the recipient was erased, and gets nothing
	Invalid  string           // what is invalid about the line; empty: it was decided
	Draft    booking.Draft    // what was decided
	Decision booking.Decision // of the draft
}

// Outcome says what became of the line, by the names that are kept.
func (d *CampaignDecided) Outcome() (outcome push.CampaignOutcome, reason string, rules []string) {
	switch {
	case d.Erased:
		return push.OutcomeCanceled, "erased", nil
	case d.Invalid != "":
		return push.OutcomeInvalid, d.Invalid, nil
	}
	return d.Decision.OfCampaign()
}

// Deferred reports whether the recipient's push was booked at another time than was asked for.
func (d *CampaignDecided) Deferred() bool {
	p := &d.Decision.Push
	return d.Invalid == "" && !d.Erased && d.Decision.Outcome == booking.Booked && !p.SendAt.Equal(p.RequestedSendAt)
}

// CampaignChunkDone is what a chunk has decided.
type CampaignChunkDone struct {
	Decided []CampaignDecided // in the order of the lines' places
	Next    CampaignPlace     // behind the last of them
	More    bool              // there may be others behind it
	Status  push.CampaignStatus
	Now     time.Time // by Postgres' clock
}

// CampaignLanes are the ranges of shards that a chunk may have recipients of.
func (s *Runs) CampaignLanes() []push.Lane { return push.Lanes(s.db.Cfg.Lanes) }

// BookCampaignChunk decides the next recipients of a campaign that is starting, and books what is granted. Their outcomes and
// their pushes are committed together, so each recipient is decided once, whichever worker does it and however often it is
// asked to. It decides nothing while the campaign has another status, which it returns.
func (s *Runs) BookCampaignChunk(ctx context.Context, o CampaignChunk) (done CampaignChunkDone, err error) {
	for {
		err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			done, err = s.campaignChunk(ctx, c, &o, true)
			return err
		})
		if !errors.Is(err, pushes.ErrReadMore) {
			return done, err
		}
	}
}

// TryCampaignChunk decides the next recipients of a campaign as a start would, and books nothing.
func (s *Runs) TryCampaignChunk(ctx context.Context, o CampaignChunk) (done CampaignChunkDone, err error) {
	for {
		err = s.db.Read(ctx, o.Campaign.Tenant, func(ctx context.Context, c pg.Reader) error {
			return pgx.BeginTxFunc(ctx, c.Conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, pg.ReadSettingsSQL, pg.Milliseconds(s.db.Cfg.ReadTimeout)); err != nil {
					return err
				}
				done, err = s.campaignChunk(ctx, c.Conn, &o, false)
				return err
			})
		})
		if !errors.Is(err, pushes.ErrReadMore) {
			return done, err
		}
	}
}

// campaignChunk is one run of the transaction, or without book of the same reads without locks.
//
// What a line asks for is planned before the recipients are locked: that may take long. Its row is locked by then. So if
// the recipient is erased meanwhile, that waits, and then finds the push.
func (s *Runs) campaignChunk(ctx context.Context, c *pgxpool.Conn, o *CampaignChunk, book bool) (done CampaignChunkDone, err error) {
	done.Status = push.CampaignStarting
	if book {
		if _, err := c.Exec(ctx, `begin isolation level read committed`); err != nil {
			return done, err
		}
		row := c.QueryRow(ctx, `SELECT status FROM campaigns WHERE id = $1 FOR NO KEY UPDATE`, o.Campaign.ID)
		if err := row.Scan((*string)(&done.Status)); err != nil {
			return done, err
		}
		if done.Status != push.CampaignStarting {
			_, err := c.Exec(ctx, `rollback`)
			return done, err
		}
	}
	var terms terms.Read
	used := terms.Use(&s.terms.Known, o.Campaign.Tenant)
	if done.Decided, done.More, err = s.chunkLines(ctx, c, o, book); err != nil {
		return done, err
	}
	people, err := s.chunkPeople(ctx, c, o, &terms, used.Described, done.Decided)
	if err != nil {
		return done, err
	}
	planned, err := s.planChunk(ctx, o, used.Or(o.File), people, done.Decided)
	if err != nil {
		return done, err
	}
	done.More = done.More || planned < len(done.Decided)
	done.Decided = done.Decided[:planned]
	if done.Next = o.After; planned > 0 {
		last := &done.Decided[planned-1]
		done.Next = CampaignPlace{push.Shard(last.Key), last.Key, last.Line.Recipient}
	}
	return done, s.decideChunk(ctx, c, o, &done, used.Version, book)
}

// decideChunk decides what was planned, under the recipients' locks, and writes it.
func (s *Runs) decideChunk(ctx context.Context, c *pgxpool.Conn, o *CampaignChunk, done *CampaignChunkDone, version int64, book bool) error {
	var (
		order = pushes.Order{Order: booking.Order{Policy: o.File, Now: o.Now}}
		at    []int // of the drafts, in Decided
		err   error
	)
	for i := range done.Decided {
		if d := &done.Decided[i]; d.Invalid == "" && !d.Erased {
			order.Drafts, at = append(order.Drafts, d.Draft), append(at, i)
		}
	}
	if o.Room != nil && len(at) > 0 {
		if order.CapUsage, err = o.Room(ctx, order.Drafts); err != nil {
			return err
		}
	}
	r := s.pushes.NewBookingRead(ordersOf(order), false, pushes.OwnRows)
	r.Begun = true
	if o.Look != nil {
		r.Look = func(who quota.Recipient, view quota.View) {
			o.Look(who, booking.Standing{Terms: r.Terms.Used[who.Tenant].Or(o.File), Person: r.Terms.Person(who, &r.People)}, view)
		}
	}
	s.pushes.Crowds.Whole(r)
	if book && len(r.Locks) > 0 {
		locks := &pgx.Batch{}
		s.db.Locking(false).Queue(locks, r.Locks)
		if err := c.SendBatch(ctx, locks).Close(); err != nil {
			return err
		}
	}
	decider, err := r.Start(ctx, s.pushes, c, s.db.Locking(false), false)
	if err != nil {
		return err
	}
	if len(at) > 0 && r.Terms.Used[o.Campaign.Tenant].Version != version {
		_ = r.Close()
		return &terms.OtherTermsError{Known: &s.terms.Known, Tenants: []uuid.UUID{o.Campaign.Tenant}} // it was planned by others
	}
	if len(at) > 0 {
		decisions, err := s.decideOrder(ctx, decider, order)
		if err := errors.Join(r.Close(), err); err != nil {
			return err
		}
		for n, i := range at {
			done.Decided[i].Decision = decisions[n]
			if capped := decisions[n].Capped; decisions[n].Outcome == booking.Uncounted {
				return &UncountedError{capped.Day}
			}
		}
	} else if err := r.Close(); err != nil {
		return err
	}
	for _, recipient := range r.Crowded {
		s.pushes.Crowds.Put(recipient, pushes.Crowd{})
	}
	if unseen := o.lookFurther(done.Decided); unseen || len(r.Crowded) > 0 {
		return pushes.ErrReadMore
	}
	if done.Now = decider.Now(); !book {
		return nil
	}
	return s.writeChunk(ctx, c, o, done, decider.Granted, r.Pushes)
}

// lookFurther has drafts see all times that they may be moved to, if what they saw was not enough.
func (o *CampaignChunk) lookFurther(decided []CampaignDecided) (unseen bool) {
	for i := range decided {
		if d := &decided[i]; d.Decision.Outcome == booking.Unseen {
			if o.far == nil {
				o.far = map[string]bool{}
			}
			o.far[d.Line.Recipient], unseen = true, true
		}
	}
	return unseen
}

// decideOrder decides an order when it is the tenant's turn.
func (s *Runs) decideOrder(ctx context.Context, decider *booking.Decider, o pushes.Order) (decisions []booking.Decision, err error) {
	noTurn := s.db.Cfg.Computing.Do(ctx, o.Tenant(), func() error {
		decisions = decider.Book(o.Order)
		return nil
	})
	if noTurn != nil {
		return nil, fmt.Errorf("%w: %w", push.ErrUnavailable, noTurn)
	}
	return decisions, nil
}

// ordersOf is a list of the order, if it has drafts.
func ordersOf(o pushes.Order) []pushes.Order {
	if len(o.Drafts) == 0 {
		return nil
	}
	return []pushes.Order{o}
}

// UncountedError: a push may move to a day that the room for the chunk does not tell. Nothing was decided.
type UncountedError struct{ Day booking.Day }

// Error says it in one sentence.
func (e *UncountedError) Error() string {
	return "how many recipients " + e.Day.Begin().Format(time.DateOnly) + " has was not counted"
}
