package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// Simulator says what a start of a campaign would do, and does nothing of it. It is safe for concurrent use.
//
// It plans and decides chunk by chunk as a start does, each beside what is booked by then, and holds no lock: with nothing
// submitted, moved or canceled in between, a start does what the simulation said, recipient by recipient.
type Simulator struct {
	campaigns *Service
	store     *store.Store
	pushes    drafter
	cfg       SimulatorConfig
}

// SimulatorConfig is what simulations need to know.
type SimulatorConfig struct {
	Policy booking.Terms // of tenants without a policy of their own
	Caps   push.Caps     // of tenants that have none of their own

	// Parse makes the template of a campaign's message.
	Parse func(c *push.Campaign) (Template, error)
}

// NewSimulator returns a simulator of campaigns, whose pushes this service would draft.
func NewSimulator(s *Service, pushes drafter, cfg SimulatorConfig) *Simulator {
	return &Simulator{s, s.store, pushes, cfg}
}

// Simulate says what a start of a draft would do now. each, unless it is nil, is told of every recipient, a chunk at a time; an
// error of its ends the simulation. The other errors are those of a start, and a [*push.CampaignStateError] of what does not stay the
// draft that it was.
func (s *Simulator) Simulate(ctx context.Context, tenant, id uuid.UUID, own push.OwnCaps, each func([]Simulated) error) (*Simulation, error) {
	return s.SimulateChanged(ctx, tenant, id, Change{}, own, each)
}

// SimulateChanged says what a start of a draft would do after a change, which it does not make. The errors are also those of the change.
func (s *Simulator) SimulateChanged(ctx context.Context, tenant, id uuid.UUID, change Change, own push.OwnCaps, each func([]Simulated) error) (*Simulation, error) {
	c, err := s.draft(ctx, tenant, id, change)
	if err != nil {
		return nil, err
	}
	x, err := s.begin(ctx, c, own.Over(s.cfg.Caps))
	if err != nil {
		return nil, fmt.Errorf("simulate campaign: %w", err)
	}
	for _, shards := range s.store.CampaignLanes() {
		if err := x.lane(ctx, shards, each); err != nil {
			return nil, fmt.Errorf("simulate campaign: %w", err)
		}
	}
	now, err := s.draft(ctx, tenant, id, change)
	if err == nil && !now.UpdatedAt.Equal(c.UpdatedAt) {
		err = &push.CampaignStateError{Campaign: now, Detail: "the campaign was changed while it was simulated; simulate it again"}
	}
	if err != nil {
		return nil, err
	}
	return x.result(ctx)
}

// draft reads a campaign that can be simulated, and changes what was read.
func (s *Simulator) draft(ctx context.Context, tenant, id uuid.UUID, change Change) (push.Campaign, error) {
	c, err := s.store.Campaign(ctx, tenant, id)
	if err == nil && c.Status != push.CampaignDraft {
		err = &push.CampaignStateError{Campaign: c, Detail: fmt.Sprintf("the campaign is %s; it can only be simulated while it is a draft", c.Status)}
	}
	if err == nil {
		_, err = push.CampaignStart.On(c)
	}
	if err == nil && change != (Change{}) {
		c, err = s.changed(ctx, c, change)
	}
	if err == nil {
		err = s.campaigns.checkStart(c)
	}
	return c, err
}

// changed is a draft after a change.
func (s *Simulator) changed(ctx context.Context, c push.Campaign, change Change) (push.Campaign, error) {
	var wrong error
	err := s.campaigns.cfg.Computing.Do(ctx, c.Tenant, func() error {
		wrong = s.campaigns.Check(change, c).Err()
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("simulate campaign: %w", err)
	}
	return s.campaigns.complete(change).on(c), wrong
}

// simulation is one under way.
type simulation struct {
	*Simulator
	campaign push.Campaign
	planner  *Planner
	sooner   *Planner // of the first of the better starts
	now      time.Time
	others   bool // the tenant has other campaigns
	totals   *totals
	starts   *booking.Starts

	usage   *booking.CapUsage   // with what would be booked; nil: the tenant has no caps
	counted map[booking.Day]int // without it

	looks map[string]*look // at the recipients of a chunk
}

// begin reads what all of a simulation is decided by.
func (s *Simulator) begin(ctx context.Context, c push.Campaign, caps push.Caps) (*simulation, error) {
	x := &simulation{Simulator: s, campaign: c, totals: newTotals(), counted: map[booking.Day]int{}, looks: map[string]*look{}}
	var message Template
	err := s.campaigns.cfg.Computing.Do(ctx, c.Tenant, func() (err error) {
		message, err = s.cfg.Parse(&c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if x.now, x.others, err = s.store.CampaignClock(ctx, c.Tenant); err != nil {
		return nil, err
	}
	if caps != (push.Caps{}) {
		x.usage = &booking.CapUsage{Caps: caps, Days: map[booking.Day]int{}}
		if caps.PendingPushes > 0 {
			if x.usage.Pending, err = s.store.Pending(ctx, c.Tenant, caps.PendingPushes+1); err != nil {
				return nil, err
			}
		}
	}
	x.planner = NewPlanner(s.pushes, c, message, x.now)
	x.starts = booking.NewStarts(firstStart(&c, x.now), x.usage)
	x.sooner = x.planner.at(x.starts.First())
	return x, nil
}

// firstStart is the time from which better starts are looked for: that of the campaign, or now if that is over. A local time
// begins where clocks are furthest ahead of UTC.
func firstStart(c *push.Campaign, now time.Time) time.Time {
	planned := c.SendAt
	if !c.LocalTime.IsZero() {
		planned = c.LocalTime.Add(-14 * time.Hour)
	}
	if planned.Before(now) {
		return now
	}
	return planned
}

// lastStart is the last time at which the campaign may start, so that its spread ends by latest; zero: there is none.
func lastStart(c *push.Campaign) time.Time {
	if c.Latest.IsZero() {
		return time.Time{}
	}
	return c.Latest.Add(min(0, quota.Second-c.Spread))
}

// lane simulates the recipients in some shards.
func (x *simulation) lane(ctx context.Context, shards push.Lane, each func([]Simulated) error) error {
	o := store.CampaignChunk{
		Campaign: x.campaign, Shards: shards, After: store.BeforeShards(shards), File: x.cfg.Policy, Now: x.now, Plan: x.plan, Look: x.look,
	}
	if x.usage != nil {
		o.Room = func(context.Context, []booking.Draft) (*booking.CapUsage, error) { return x.usage, nil }
	}
	for more := true; more; {
		clear(x.looks)
		done, err := x.store.TryCampaignChunk(ctx, o)
		if uncounted, ok := errors.AsType[*store.UncountedError](err); ok {
			if x.usage.Days[uncounted.Day], err = x.count(ctx, uncounted.Day); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		all, err := x.add(ctx, shards, done.Decided)
		if err == nil && each != nil && len(all) > 0 {
			err = each(all)
		}
		if err != nil {
			return err
		}
		o.After, more = done.Next, done.More
	}
	return nil
}

// result is what was counted.
func (x *simulation) result(ctx context.Context) (*Simulation, error) {
	sum := &x.totals.Simulation
	sum.CollidesWith, sum.BetterStarts = x.totals.most(), x.starts.Better(sum.Accepted, lastStart(&x.campaign), maxBetterStarts)
	ids := make([]uuid.UUID, len(sum.CollidesWith))
	for i := range ids {
		ids[i] = sum.CollidesWith[i].Campaign
	}
	names, err := x.store.CampaignNames(ctx, x.campaign.Tenant, ids)
	for i := range sum.CollidesWith {
		sum.CollidesWith[i].Name = names[ids[i]]
	}
	return sum, err
}
