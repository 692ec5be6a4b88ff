package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Chunk decides the next undecided recipients of a campaign: it reads their lines, plans their pushes without a lock, and
// decides about them in one transaction that checks the lines again.
type Chunk struct {
	campaigns.Part
	File booking.Terms // for a tenant without a policy of its own
	Now  time.Time     // see [booking.Order]

	// Computing limits concurrent planning and deciding; nil: no limit.
	Computing *bulkhead.Computing[uuid.UUID]

	// Plan returns the draft for a line, or an error that explains why the line is invalid. attributes are the
	// recipient's, or nil.
	Plan func(line broadcast.AudienceLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error)

	// Room returns the usage of the tenant's caps for the drafts; nil: the tenant has no caps.
	Room func(ctx context.Context, drafts []booking.Draft) (*booking.CapUsage, error)

	// Look, if set, receives the bookings of each recipient right before the decision.
	Look func(who quota.Recipient, of booking.Standing, view quota.View)

	far map[string]bool // recipients without a free time for days

	planned int // lines in the last run
	most    int // lines to plan; 0: all
}

// Done is the result of a chunk.
type Done struct {
	Decided []campaigns.Decided // in the order of the lines' places
	Next    campaigns.Position  // the place of the last line
	More    bool                // there may be undecided recipients after Next
	Status  broadcast.Status    // of the campaign; unless it is starting, nothing was decided
}

// UncountedError reports that a push may move to a day that [Chunk].Room has not counted. Nothing was decided: count the
// day, and repeat the chunk.
type UncountedError struct{ Day booking.Day }

// Error names the day.
func (e *UncountedError) Error() string {
	return "recipients of " + e.Day.Begin().Format(time.DateOnly) + " not counted"
}

// open returns the transaction of a chunk, or of a trial, which books nothing.
type open func(ctx context.Context, part campaigns.Part) (*campaigns.Chunk, context.Context)

// Decide runs the chunk until it succeeds or fails permanently. Whatever it repeats, each recipient is decided once. Each
// repetition plans half of the lines, down to one, so that descriptions that change all the time cannot hold up a campaign.
func (c Chunk) Decide(ctx context.Context, open open) (done Done, err error) {
	for {
		tx, ctx := open(ctx, c.Part)
		for again := true; again; {
			done, err = c.run(ctx, tx)
			if again, err = tx.Again(ctx, err); again {
				c.most = max(1, c.planned/2)
			}
		}
		if !errors.Is(err, campaigns.ErrReadMore) {
			return done, err
		}
		c.widen(done.Decided)
	}
}

// run takes the steps of the transaction once.
func (c *Chunk) run(ctx context.Context, tx *campaigns.Chunk) (done Done, err error) {
	lines, err := tx.Lines(ctx)
	if err != nil {
		return done, err
	}
	planned, o, err := c.plan(ctx, lines)
	if err != nil {
		return done, err
	}
	c.planned = len(planned)
	done = Done{Decided: planned, Next: c.After, More: lines.More || len(planned) < len(lines.All)}
	if n := len(planned); n > 0 {
		done.Next = planned[n-1].Position()
	}
	if c.Room != nil && len(o.Drafts) > 0 {
		if o.CapUsage, err = c.Room(ctx, o.Drafts); err != nil {
			return done, err
		}
	}
	if done.Status, err = tx.Lock(ctx, planned, o); err != nil || done.Status != broadcast.Starting {
		return Done{Status: done.Status}, err
	}
	snapshot, err := tx.Read(ctx)
	if err != nil {
		return done, err
	}
	decider, err := c.decide(ctx, snapshot, o, planned)
	if err != nil {
		return done, err
	}
	return done, tx.Write(ctx, planned, decider.Granted, decider.Now())
}

// decide waits for the tenant's turn, decides an order, and keeps the decisions on the planned lines.
func (c *Chunk) decide(ctx context.Context, snapshot booking.Snapshot, o booking.Order, planned []campaigns.Decided) (*booking.Decider, error) {
	if c.Look != nil {
		snapshot.Views = watched{snapshot.Views, func(who quota.Recipient, view *quota.View) {
			c.Look(who, booking.Standing{Terms: booking.OrNone(snapshot.Terms[who.Tenant], c.File), Person: snapshot.People[who]}, *view)
		}}
	}
	decider := booking.NewDecider(snapshot)
	if len(o.Drafts) == 0 {
		return decider, nil
	}
	var decisions []booking.Decision
	if err := c.turn(ctx, func() { decisions = decider.Book(o) }); err != nil {
		return nil, err
	}
	for i := range planned {
		d := &planned[i]
		if d.Erased || d.Invalid != "" {
			continue
		}
		d.Decision, decisions = decisions[0], decisions[1:]
		if d.Decision.Outcome == booking.Uncounted {
			return nil, &UncountedError{d.Decision.Capped.Day}
		}
	}
	return decider, nil
}

// watched shows each view before it is used.
type watched struct {
	booking.Views
	look func(who quota.Recipient, view *quota.View)
}

// View returns the view of a recipient.
func (w watched) View(who quota.Recipient) *quota.View {
	view := w.Views.View(who)
	w.look(who, view)
	return view
}

// widen marks the recipients whose drafts saw too few bookings, so that the next run reads all times that they may be
// moved to.
func (c *Chunk) widen(decided []campaigns.Decided) {
	for i := range decided {
		if d := &decided[i]; d.Decision.Outcome == booking.Unseen {
			if c.far == nil {
				c.far = map[string]bool{}
			}
			c.far[d.Recipient] = true
		}
	}
}

// The limits of planning: of all lines of a chunk, in time and in bytes of their messages, and of one turn, which is not
// much longer than the longest time for one line.
const (
	planTime  = time.Second
	planBytes = 8 << 20
	planTurn  = 50 * time.Millisecond
)

// plan plans lines in turns, because rendering their templates may take long. It returns the planned lines, at least one,
// before it reached the limit of time or memory, and the order of their drafts.
func (c *Chunk) plan(ctx context.Context, lines *campaigns.Lines) (planned []campaigns.Decided, o booking.Order, err error) {
	planned = make([]campaigns.Decided, 0, len(lines.All))
	o = booking.Order{Policy: c.File, Now: c.Now}
	began, size := time.Now(), 0
	more := func() bool {
		n := len(planned)
		return n < len(lines.All) && (c.most == 0 || n < c.most) && (n == 0 || size <= planBytes && time.Since(began) <= planTime)
	}
	for more() && err == nil {
		err = c.turn(ctx, func() {
			for turn := time.Now(); more() && time.Since(turn) < planTurn; {
				d := c.planLine(lines, &lines.All[len(planned)])
				if planned = append(planned, d); d.Invalid == "" && !d.Erased {
					o.Drafts = append(o.Drafts, d.Draft)
					size += len(d.Draft.Push.Message) + len(d.Draft.Push.Rendering)
				}
			}
		})
	}
	return planned, o, err
}

// planLine plans the draft of a line.
func (c *Chunk) planLine(lines *campaigns.Lines, line *campaigns.Line) campaigns.Decided {
	d := campaigns.Decided{Line: *line}
	if d.Erased {
		return d
	}
	of, attributes := lines.Standing(line, c.File)
	draft, err := c.Plan(line.AudienceLine, of, attributes)
	if err != nil {
		d.Invalid = err.Error()
		return d
	}
	draft.Push.Burst = true // of the same level, other due pushes are sent before a campaign's
	draft.Far = draft.Far || c.far[line.Recipient]
	d.Draft = draft
	return d
}

// turn waits for the tenant's share of the processors, and computes.
func (c *Chunk) turn(ctx context.Context, compute func()) error {
	err := c.Computing.Do(ctx, c.Campaign.Tenant, func() error {
		compute()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	return nil
}
