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

// The limits of one chunk: lines, bytes of their variables or messages, and the time to render them.
const (
	chunkLines = 250
	chunkBytes = 8 << 20
	planTime   = time.Second
)

// CampaignChunk asks to decide the next undecided recipients of a campaign, in the order of shards and keys.
type CampaignChunk struct {
	Campaign push.Campaign
	Shards   push.Lane     // within one lane of the store: see [Runs.CampaignLanes]
	After    CampaignPlace // decide only recipients after this place
	File     booking.Terms // for a tenant without a policy of its own
	Now      time.Time     // see [booking.Order]

	// Plan returns the draft for a line, or an error that explains why the line is invalid. attributes are the
	// recipient's, or nil.
	Plan func(line push.CampaignLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error)

	// Room returns the usage of the tenant's caps for the drafts; nil: the tenant has no caps.
	Room func(ctx context.Context, drafts []booking.Draft) (*booking.CapUsage, error)

	// Look, if set, receives the bookings of each recipient right before the decision.
	Look func(who quota.Recipient, of booking.Standing, view quota.View)

	far map[string]bool // recipients without a free time for days
}

// CampaignPlace is a place in the order of a campaign's recipients. The zero value is before all recipients of a lane that
// begins with shard 0; see [BeforeShards].
type CampaignPlace struct {
	Shard     int
	Key       int64
	Recipient string
}

// BeforeShards returns the place before the recipients of some shards.
func BeforeShards(shards push.Lane) CampaignPlace {
	return CampaignPlace{Shard: shards.First - 1}
}

// CampaignDecided is the outcome of a line.
type CampaignDecided struct {
	Line push.CampaignLine
	Key  int64 // of the recipient

	Erased   bool             // the recipient was erased, and gets nothing
	Invalid  string           // why the line is invalid; empty: it was decided
	Draft    booking.Draft    // the draft that was decided
	Decision booking.Decision // about the draft
}

// Outcome returns the outcome of the line, with the reason and the names of the rules that refused it.
func (d *CampaignDecided) Outcome() (outcome push.CampaignOutcome, reason string, rules []string) {
	switch {
	case d.Erased:
		return push.OutcomeCanceled, "erased", nil
	case d.Invalid != "":
		return push.OutcomeInvalid, d.Invalid, nil
	}
	return d.Decision.OfCampaign()
}

// Deferred reports whether the recipient's push was booked at another time than requested.
func (d *CampaignDecided) Deferred() bool {
	p := &d.Decision.Push
	return d.Invalid == "" && !d.Erased && d.Decision.Outcome == booking.Booked && !p.SendAt.Equal(p.RequestedSendAt)
}

// CampaignChunkDone is the result of a chunk.
type CampaignChunkDone struct {
	Decided []CampaignDecided // in the order of the lines' places
	Next    CampaignPlace     // the place of the last line
	More    bool              // there may be undecided recipients after Next
	Status  push.CampaignStatus
	Now     time.Time // of Postgres' clock
}

// CampaignLanes returns the ranges of shards within which each chunk must be.
func (s *Runs) CampaignLanes() []push.Lane { return push.Lanes(s.db.Cfg.Lanes) }

// BookCampaignChunk decides the next recipients of a starting campaign, and books the granted pushes. It commits outcomes
// and pushes together, so each recipient is decided once, even if several workers try, or one repeats the call. If the
// campaign has another status, it decides nothing and returns that status.
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

// TryCampaignChunk decides the next recipients of a campaign as a start would, but books nothing.
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

// campaignChunk runs the transaction once; without book, it only reads, without locks.
//
// Planning may take long, so it comes before the locks of the recipients. The rows of the lines are already locked then:
// a concurrent erasure of a recipient waits for them, and then finds the push.
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

// decideChunk decides the planned drafts under the recipients' locks, and writes the outcomes.
func (s *Runs) decideChunk(ctx context.Context, c *pgxpool.Conn, o *CampaignChunk, done *CampaignChunkDone, version int64, book bool) error {
	var (
		order = pushes.Order{Order: booking.Order{Policy: o.File, Now: o.Now}}
		at    []int // indexes of the drafts in Decided
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
		return &terms.OtherTermsError{Known: &s.terms.Known, Tenants: []uuid.UUID{o.Campaign.Tenant}} // the drafts were planned by earlier terms
	}
	var decisions []booking.Decision
	if len(at) > 0 {
		decisions, err = s.decideOrder(ctx, decider, order)
	}
	if err := errors.Join(r.Close(), err); err != nil {
		return err
	}
	if err := done.note(at, decisions); err != nil {
		return err
	}
	for _, recipient := range r.Crowded {
		s.pushes.Crowds.Put(recipient, pushes.Crowd{})
	}
	if unseen := o.widenUnseen(done.Decided); unseen || len(r.Crowded) > 0 {
		return pushes.ErrReadMore
	}
	if done.Now = decider.Now(); !book {
		return nil
	}
	return s.writeChunk(ctx, c, o, done, decider.Granted, r.Pushes)
}

// note keeps the decisions on the lines with these indexes.
func (done *CampaignChunkDone) note(at []int, decisions []booking.Decision) error {
	for n, i := range at {
		done.Decided[i].Decision = decisions[n]
		if capped := decisions[n].Capped; decisions[n].Outcome == booking.Uncounted {
			return &UncountedError{capped.Day}
		}
	}
	return nil
}

// widenUnseen marks the drafts that saw too few bookings, so that the next run reads all times that they may be moved to.
// It reports whether there are any.
func (o *CampaignChunk) widenUnseen(decided []CampaignDecided) (unseen bool) {
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

// decideOrder waits for the tenant's share of the processors, and decides an order.
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

// ordersOf returns a list with the order, or nil if it has no drafts.
func ordersOf(o pushes.Order) []pushes.Order {
	if len(o.Drafts) == 0 {
		return nil
	}
	return []pushes.Order{o}
}

// UncountedError reports that a push may move to a day that [CampaignChunk].Room has not counted. Nothing was decided:
// count the day, and repeat the chunk.
type UncountedError struct{ Day booking.Day }

// Error names the day.
func (e *UncountedError) Error() string {
	return "recipients of " + e.Day.Begin().Format(time.DateOnly) + " not counted"
}
