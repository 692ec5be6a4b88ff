package campaign

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

const (
	// interval is the time between two polls for work.
	interval = 250 * time.Millisecond
	// The pause between visits to an idle campaign is at least restShare times as long as the last visit took. Visits
	// to waiting campaigns take at most 1/restShare of the time.
	restShare = 20
	// mostRest caps the pause between visits. A paused campaign is visited every pausedRest, so its expiries are
	// reported up to that late.
	mostRest   = 15 * time.Second
	pausedRest = 5 * time.Second
	// progressEvery is the time between two progress events of a campaign that is being booked.
	progressEvery = time.Second
)

// RunnerConfig configures a runner.
type RunnerConfig struct {
	Policy booking.Terms // of tenants without a policy of their own

	// Computing limits concurrent planning and deciding; nil: no limit.
	Computing *bulkhead.Computing[uuid.UUID]

	// Parse parses the template of a campaign's message.
	Parse func(c *broadcast.Campaign) (Template, error)
}

// runnerStore executes the steps of campaigns.
type runnerStore interface {
	turnStore
	chunkStore
	pauseStore
	cancelStore
	SettleCampaign(ctx context.Context, id uuid.UUID) (status broadcast.Status, due time.Duration, err error)
}

// turnStore takes campaigns for a worker, and releases them.
type turnStore interface {
	TakeCampaign(ctx context.Context, worker uuid.UUID, which campaigns.Condition, except []uuid.UUID) (*campaigns.Running, error)
	LeaveCampaign(ctx context.Context, worker, id uuid.UUID, after time.Duration) error
}

// pauseStore parks the waiting pushes of campaigns.
type pauseStore interface {
	ParkCampaign(ctx context.Context, id uuid.UUID) (more bool, err error)
	UnparkCampaign(ctx context.Context, id uuid.UUID) (due []booking.Unparked, more bool, err error)
	ExpireParked(ctx context.Context, id uuid.UUID) (ended []booking.Ended, more bool, err error)
}

// cancelStore ends what is left of canceled campaigns.
type cancelStore interface {
	WithdrawCampaign(ctx context.Context, id uuid.UUID) (ended []booking.Ended, more bool, err error)
	DropUndecided(ctx context.Context, c broadcast.Campaign, shards push.Lane, after campaigns.Position) (next campaigns.Position, more bool, err error)
}

// pushes books the pushes of recipients, and follows up on bookings.
type pushes interface {
	drafter
	Reserve(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, drafts []booking.Draft, others []booking.Day) (*schedule.Room, error)
	Follow(d *booking.Draft, v *booking.Decision)
	FollowEnd(e booking.Ended)
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// runner advances campaigns in steps, each in a transaction that can be repeated. Tenants take turns, and so do the
// campaigns of each. Visits to campaigns that wait for their pushes take a small part of the time, so that others
// advance however many wait. Tenants take turns there too, so that the end of a campaign is noticed however many
// campaigns of another tenant wait.
type runner struct {
	store   runnerStore
	pushes  pushes
	log     *slog.Logger
	cfg     RunnerConfig
	worker  uuid.UUID
	work    map[uuid.UUID]*progress                       // by campaign of this worker
	turns   loop.RoundRobin[uuid.UUID, campaigns.Running] // campaigns with steps to do
	waits   loop.RoundRobin[uuid.UUID, campaigns.Running] // campaigns that wait for their pushes
	visited time.Time                                     // when waiting campaigns were last visited
}

// progress is a worker's progress with a campaign. Losing it only costs work.
type progress struct {
	planner   *Planner
	cursor    cursor
	withdrawn bool // of a campaign that is canceled: no push waits, so its undecided recipients are next
	reported  time.Time
}

// NewRunner returns a loop that books the recipients of started campaigns, and advances paused, resumed and canceled
// ones until they have ended. Every worker runs one. One worker at a time advances a campaign; after a crash another
// worker continues it, and repeating a step changes nothing.
func NewRunner(st runnerStore, p pushes, log *slog.Logger, cfg RunnerConfig) loop.Loop {
	r := &runner{store: st, pushes: p, log: log, cfg: cfg, worker: uuid.New(), work: map[uuid.UUID]*progress{}}
	r.turns, r.waits = r.take(campaigns.WithWork), r.take(campaigns.Waiting)
	return loop.Loop{Name: "run campaigns", Interval: interval, Log: log, Pass: r.pass}
}

// take returns the turns of tenants for a kind of campaigns.
func (r *runner) take(which campaigns.Condition) loop.RoundRobin[uuid.UUID, campaigns.Running] {
	return loop.RoundRobin[uuid.UUID, campaigns.Running]{
		Owner: func(c *campaigns.Running) uuid.UUID { return c.Tenant },
		Take: func(ctx context.Context, except []uuid.UUID) (*campaigns.Running, error) {
			return r.store.TakeCampaign(ctx, r.worker, which, except)
		},
	}
}

// pass does a step of one campaign, and visits some that wait.
func (r *runner) pass(ctx context.Context) (full bool, err error) {
	full, err = r.advance(ctx)
	if err == nil && (!full || time.Since(r.visited) >= interval) {
		err = r.visitWaiting(ctx)
	}
	return full, err
}

// advance does a step of the next campaign.
func (r *runner) advance(ctx context.Context) (found bool, err error) {
	c, err := r.turns.Next(ctx)
	if err != nil || c == nil {
		return false, err
	}
	more, err := r.visit(ctx, c)
	return more || err == nil, err
}

// visitWaiting visits campaigns that wait for their pushes, within their share of the time.
func (r *runner) visitWaiting(ctx context.Context) error {
	last := r.visited
	r.visited = time.Now()
	for part := min(r.visited.Sub(last), time.Second) / restShare; time.Since(r.visited) < part; {
		c, err := r.waits.Next(ctx)
		if err != nil || c == nil {
			return err
		}
		if _, err = r.visit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// visit does a step of a campaign. If nothing more is to be done at once, it releases the campaign for a while.
func (r *runner) visit(ctx context.Context, c *campaigns.Running) (more bool, err error) {
	began := time.Now()
	more, due, err := r.step(ctx, c)
	if err != nil {
		return false, fmt.Errorf("campaign %s, %s: %w", c.ID, c.Status, err)
	}
	if more {
		return true, nil
	}
	delete(r.work, c.ID)
	rest := max(interval, restShare*time.Since(began))
	switch c.Status {
	case broadcast.Paused:
		rest = max(rest, pausedRest)
	case broadcast.Running:
		rest = max(rest, due)
	}
	return false, r.store.LeaveCampaign(ctx, r.worker, c.ID, min(rest, mostRest))
}

// step does the next step for a campaign's state: it parks, unparks, books or cancels a portion. It reports whether there
// is more to do at once, and when the next push is due.
func (r *runner) step(ctx context.Context, c *campaigns.Running) (more bool, due time.Duration, err error) {
	of := r.work[c.ID]
	if of == nil {
		of = &progress{cursor: newCursor(r.store.CampaignLanes())}
		r.work[c.ID] = of
	}
	if _, after, ok := of.cursor.next(); ok && (c.Status == broadcast.Starting || of.withdrawn) {
		shard, found, err := r.store.NextUndecided(ctx, c.Campaign, after)
		if err != nil {
			return false, 0, err
		}
		of.cursor.skip(shard, found)
	}
	switch c.Status {
	case broadcast.Starting, broadcast.Running:
		if c.Parked {
			due, more, err := r.store.UnparkCampaign(ctx, c.ID)
			r.wake(due)
			if err != nil || more {
				return more, 0, err
			}
		}
		if c.Status == broadcast.Starting {
			if shards, after, ok := of.cursor.next(); ok {
				more, err = true, r.book(ctx, c, of, campaigns.Part{Campaign: c.Campaign, Shards: shards, After: after})
			} else {
				of.cursor = newCursor(r.store.CampaignLanes()) // another worker may have died with a chunk that this one passed
				ended, failed := r.store.EndCampaignStart(ctx, c.ID)
				more, err = !ended, failed
			}
			if err != nil {
				return false, 0, err
			}
		}
	case broadcast.Pausing, broadcast.Paused:
		if more, err = r.store.ParkCampaign(ctx, c.ID); err != nil || more {
			return more, 0, err
		}
		ended, more, err := r.store.ExpireParked(ctx, c.ID)
		r.followEnds(ctx, ended, "push expired")
		if err != nil || more {
			return more, 0, err
		}
	case broadcast.Canceling:
		if more, err = r.cancel(ctx, c, of); err != nil || more {
			return more, 0, err
		}
	}
	if more && time.Since(of.reported) < progressEvery {
		return more, 0, nil
	}
	of.reported = time.Now()
	status, due, err := r.store.SettleCampaign(ctx, c.ID)
	if err == nil && status.Over() {
		r.log.InfoContext(ctx, "campaign ended", "tenant", c.Tenant, "campaign", c.ID, "status", status)
	}
	return more, due, err
}

// wake wakes workers for pushes that are due again.
func (r *runner) wake(due []booking.Unparked) {
	if len(due) > 0 {
		failpoint.Hit(failpoint.CampaignUnparked)
	}
	for _, d := range due {
		r.pushes.Wake(d.RecipientKey, d.At, d.In)
	}
}

// cancel frees the places of waiting pushes, and then drops undecided recipients. Attempts under way finish; their
// retries are withdrawn later.
func (r *runner) cancel(ctx context.Context, c *campaigns.Running, of *progress) (more bool, err error) {
	ended, more, err := r.store.WithdrawCampaign(ctx, c.ID)
	if len(ended) > 0 {
		failpoint.Hit(failpoint.CampaignWithdrew)
	}
	r.followEnds(ctx, ended, "push canceled with its campaign")
	if err != nil || more {
		return more, err
	}
	of.withdrawn = true
	shards, after, ok := of.cursor.next()
	if !ok {
		return false, nil
	}
	next, more, err := r.store.DropUndecided(ctx, c.Campaign, shards, after)
	if err == nil {
		of.cursor.pass(next, more)
	}
	return true, err
}

func (r *runner) followEnds(ctx context.Context, ended []booking.Ended, what string) {
	for _, e := range ended {
		r.pushes.FollowEnd(e)
		r.log.DebugContext(ctx, what, "push", e.ID, "request_id", e.RequestID)
	}
}
