package campaign

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
)

const (
	// interval is how often a worker looks whether there is something to do for a campaign.
	interval = 250 * time.Millisecond
	// restShare is how many times as long as a look at a campaign the pause behind it is, if there was nothing to do; and how many
	// times as long as looks at campaigns the time is that is left for others: so looks take a small part of the time.
	restShare = 20
	// mostRest is the longest pause, and pausedRest that behind a look at a campaign that is paused: what expires meanwhile is told so
	// much later.
	mostRest   = 15 * time.Second
	pausedRest = 5 * time.Second
	// tellEvery is how often webhooks are told how far a campaign is that is being booked.
	tellEvery = time.Second
)

// RunnerConfig is what a runner has to know.
type RunnerConfig struct {
	Policy booking.Terms // of tenants without a policy of their own

	// Parse makes the template of a campaign's message.
	Parse func(c *push.Campaign) (Template, error)
}

// runnerStore has the campaigns, and does their steps.
type runnerStore interface {
	chunkStore
	TakeCampaign(ctx context.Context, worker uuid.UUID, which store.CampaignsWith, except []uuid.UUID) (*store.RunningCampaign, error)
	LeaveCampaign(ctx context.Context, worker, id uuid.UUID, after time.Duration) error
	ParkCampaign(ctx context.Context, id uuid.UUID) (more bool, err error)
	UnparkCampaign(ctx context.Context, id uuid.UUID) (due []store.Unparked, more bool, err error)
	ExpireParked(ctx context.Context, id uuid.UUID) (ended []booking.Ended, more bool, err error)
	WithdrawCampaign(ctx context.Context, id uuid.UUID) (ended []booking.Ended, more bool, err error)
	DropUndecided(ctx context.Context, p push.Campaign, shards push.Lane, after store.CampaignPlace) (next store.CampaignPlace, more bool, err error)
	SettleCampaign(ctx context.Context, id uuid.UUID) (status push.CampaignStatus, due time.Duration, err error)
}

// pushes does what goes with a booking.
type pushes interface {
	drafter
	Reserve(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, drafts []booking.Draft, others []booking.Day) (*schedule.Room, error)
	Follow(d *booking.Draft, v *booking.Decision)
	FollowEnd(e booking.Ended)
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// runner carries campaigns on: step by step, each in a transaction that can be repeated. Tenants take turns, and so do the campaigns
// of each. Those that wait for their pushes are looked at in a small part of the time: however many they are, others go on. Tenants
// take turns there too, so that the end of a campaign is noticed however many campaigns of another tenant wait.
type runner struct {
	store  runnerStore
	pushes pushes
	log    *slog.Logger
	cfg    RunnerConfig
	worker uuid.UUID
	work   map[uuid.UUID]*progress                      // of the campaigns that this worker has
	turns  loop.Turns[uuid.UUID, store.RunningCampaign] // of campaigns with steps to do
	waits  loop.Turns[uuid.UUID, store.RunningCampaign] // of campaigns that wait for their pushes
	looked time.Time                                    // when those were looked at last that wait
}

// progress is how far a worker has come with a campaign. It only saves work.
type progress struct {
	planner *Planner
	places  places
	told    time.Time
}

// NewRunner returns a loop that books the recipients of campaigns that were started, and carries on what was paused, resumed or
// canceled, until it has ended. Every worker runs one. A campaign is in the hands of one of them at a time, and goes on with
// another one after a crash: what was done is found done.
func NewRunner(st runnerStore, p pushes, log *slog.Logger, cfg RunnerConfig) loop.Loop {
	r := &runner{store: st, pushes: p, log: log, cfg: cfg, worker: uuid.New(), work: map[uuid.UUID]*progress{}}
	r.turns, r.waits = r.take(store.CampaignsWithWork), r.take(store.CampaignsThatWait)
	return loop.Loop{Name: "run campaigns", Interval: interval, Log: log, Pass: r.pass}
}

// take returns the turns of tenants at campaigns of a kind.
func (r *runner) take(which store.CampaignsWith) loop.Turns[uuid.UUID, store.RunningCampaign] {
	return loop.Turns[uuid.UUID, store.RunningCampaign]{
		Owner: func(c *store.RunningCampaign) uuid.UUID { return c.Tenant },
		Take: func(ctx context.Context, except []uuid.UUID) (*store.RunningCampaign, error) {
			return r.store.TakeCampaign(ctx, r.worker, which, except)
		},
	}
}

// pass is a step of one campaign, and a look at some that wait.
func (r *runner) pass(ctx context.Context) (full bool, err error) {
	full, err = r.carryOn(ctx)
	if err == nil && (!full || time.Since(r.looked) >= interval) {
		err = r.look(ctx)
	}
	return full, err
}

// carryOn does a step of the campaign whose turn it is.
func (r *runner) carryOn(ctx context.Context) (found bool, err error) {
	c, err := r.turns.Next(ctx)
	if err != nil || c == nil {
		return false, err
	}
	more, err := r.visit(ctx, c)
	return more || err == nil, err
}

// look looks at campaigns that wait for their pushes, for as long as its part of the time is.
func (r *runner) look(ctx context.Context) error {
	last := r.looked
	r.looked = time.Now()
	for part := min(r.looked.Sub(last), time.Second) / restShare; time.Since(r.looked) < part; {
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

// visit does a step of a campaign. If there is nothing more to do at once, it is left for a while.
func (r *runner) visit(ctx context.Context, c *store.RunningCampaign) (more bool, err error) {
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
	case push.CampaignPaused:
		rest = max(rest, pausedRest)
	case push.CampaignRunning:
		rest = max(rest, due)
	}
	return false, r.store.LeaveCampaign(ctx, r.worker, c.ID, min(rest, mostRest))
}

// step does what the state of a campaign asks for. It reports whether there is more to do at once, and when the next of its pushes is
// due.
func (r *runner) step(ctx context.Context, c *store.RunningCampaign) (more bool, due time.Duration, err error) {
	of := r.work[c.ID]
	if of == nil {
		of = &progress{places: newPlaces(r.store.CampaignLanes())}
		r.work[c.ID] = of
	}
	switch c.Status {
	case push.CampaignStarting, push.CampaignRunning:
		if c.Parked {
			if more, err = r.unpark(ctx, c); err != nil || more {
				return more, 0, err
			}
		}
		if c.Status == push.CampaignStarting {
			if more, err = r.book(ctx, c, of); err != nil {
				return more, 0, err
			}
		}
	case push.CampaignPausing, push.CampaignPaused:
		if more, err = r.park(ctx, c); err != nil || more {
			return more, 0, err
		}
	case push.CampaignCanceling:
		if more, err = r.cancel(ctx, c, of); err != nil || more {
			return more, 0, err
		}
	}
	if more && time.Since(of.told) < tellEvery {
		return more, 0, nil
	}
	of.told = time.Now()
	status, due, err := r.store.SettleCampaign(ctx, c.ID)
	if err == nil && status.Over() {
		r.log.InfoContext(ctx, "campaign ended", "tenant", c.Tenant, "campaign", c.ID, "status", status)
	}
	return more, due, err
}

// unpark has what was parked be due again.
func (r *runner) unpark(ctx context.Context, c *store.RunningCampaign) (more bool, err error) {
	due, more, err := r.store.UnparkCampaign(ctx, c.ID)
	if len(due) > 0 {
		failpoint.Hit(failpoint.CampaignUnparked)
	}
	for _, d := range due {
		r.pushes.Wake(d.RecipientKey, d.At, d.In)
	}
	return more, err
}

// park parks what waits, and ends what expires meanwhile.
func (r *runner) park(ctx context.Context, c *store.RunningCampaign) (more bool, err error) {
	if more, err = r.store.ParkCampaign(ctx, c.ID); err != nil || more {
		return more, err
	}
	ended, more, err := r.store.ExpireParked(ctx, c.ID)
	r.followEnds(ctx, ended, "push expired")
	return more, err
}

// cancel gives back the places of what waits, and then gives up those who are not decided. What is under way ends as it will, and
// what of it is to be tried again is withdrawn later.
func (r *runner) cancel(ctx context.Context, c *store.RunningCampaign, of *progress) (more bool, err error) {
	ended, more, err := r.store.WithdrawCampaign(ctx, c.ID)
	if len(ended) > 0 {
		failpoint.Hit(failpoint.CampaignWithdrew)
	}
	r.followEnds(ctx, ended, "push canceled with its campaign")
	if err != nil || more {
		return more, err
	}
	if err := r.skip(ctx, c, of); err != nil {
		return false, err
	}
	shards, after, ok := of.places.next()
	if !ok {
		return false, nil
	}
	next, more, err := r.store.DropUndecided(ctx, c.Campaign, shards, after)
	if err == nil {
		of.places.pass(next, more)
	}
	return true, err
}

func (r *runner) followEnds(ctx context.Context, ended []booking.Ended, what string) {
	for _, e := range ended {
		r.pushes.FollowEnd(e)
		r.log.DebugContext(ctx, what, "push", e.ID, "request_id", e.RequestID)
	}
}
