package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Simulator predicts what a start of a campaign would do, without doing it. It is safe for concurrent use.
//
// It plans and decides chunk by chunk as a start does, each chunk against the bookings of the moment, and holds no
// lock. If nothing is submitted, moved or canceled in between, a start does what the simulation predicted, recipient by
// recipient.
type Simulator struct {
	campaigns *Service
	store     simulatorStore
	pushes    drafter
	cfg       SimulatorConfig
}

// simulatorStore reads all that a simulation needs.
type simulatorStore interface {
	trials
	usage
	neighbours
}

// trials decides recipients without booking them.
type trials interface {
	CampaignLanes() []push.Lane
	CampaignTrial(ctx context.Context, part campaigns.Part) (*campaigns.Chunk, context.Context)
}

// usage reads the usage of a tenant's caps.
type usage interface {
	Pending(ctx context.Context, tenant uuid.UUID, most int) (int, error)
	Recipients(ctx context.Context, tenant uuid.UUID, day booking.Day, most int) (int, error)
}

// neighbours reads the tenant's other campaigns.
type neighbours interface {
	CampaignClock(ctx context.Context, tenant uuid.UUID) (now time.Time, started bool, err error)
	CampaignsOf(ctx context.Context, tenant uuid.UUID, shards push.Lane, bookings []quota.Booking) (map[uuid.UUID]uuid.UUID, error)
	CampaignNames(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]string, error)
}

// SimulatorConfig configures a Simulator.
type SimulatorConfig struct {
	Policy booking.Terms // of tenants without a policy of their own
	Caps   push.Caps     // of tenants without caps of their own

	// Speed returns the time that the speed of a tenant's channel allows for a push; 0: any number may leave at once. segmented: for
	// each segment of a text message.
	Speed func(tenant uuid.UUID, channel string) (every time.Duration, segmented bool)

	// Behind estimates how long the channel takes to send the tenant's pushes of each level that wait for it now; nil: none wait.
	Behind func(ctx context.Context, tenant uuid.UUID, channel string) ([len(push.Levels)]time.Duration, error)

	// Parse parses the template of a campaign's message.
	Parse func(c *broadcast.Campaign) (Template, error)
}

// NewSimulator returns a simulator of the service's campaigns. pushes drafts their pushes.
func NewSimulator(st simulatorStore, s *Service, pushes drafter, cfg SimulatorConfig) *Simulator {
	return &Simulator{s, st, pushes, cfg}
}

// Simulate predicts a start of a draft now. It passes the result of every recipient to each, a chunk at a time, unless
// each is nil. An error of each ends the simulation. The other errors are the errors of a start, and a
// [*broadcast.StateError] if the draft changes meanwhile.
func (s *Simulator) Simulate(ctx context.Context, tenant, id uuid.UUID, own push.OwnCaps, each func([]Simulated) error) (*Simulation, error) {
	return s.SimulateChanged(ctx, tenant, id, Change{}, own, each)
}

// SimulateChanged predicts a start of a draft after a change, which it does not store. Its errors include the errors of
// the change.
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
		err = &broadcast.StateError{Campaign: now, Detail: "the campaign was changed while it was simulated; simulate it again"}
	}
	if err != nil {
		return nil, err
	}
	return x.result(ctx)
}

// draft reads a campaign that can be simulated, and applies the change to it.
func (s *Simulator) draft(ctx context.Context, tenant, id uuid.UUID, change Change) (broadcast.Campaign, error) {
	c, err := s.campaigns.Campaign(ctx, tenant, id)
	if err == nil && c.Status != broadcast.Draft {
		err = &broadcast.StateError{Campaign: c, Detail: fmt.Sprintf("the campaign is %s; it can only be simulated while it is a draft", c.Status)}
	}
	if err == nil {
		_, err = broadcast.Start.On(c)
	}
	if err == nil && change != (Change{}) {
		c, err = s.changed(ctx, c, change)
	}
	if err == nil {
		err = s.campaigns.checkStart(c)
	}
	return c, err
}

// changed returns a draft after a change.
func (s *Simulator) changed(ctx context.Context, c broadcast.Campaign, change Change) (broadcast.Campaign, error) {
	var wrong error
	err := s.campaigns.cfg.Computing.Do(ctx, c.Tenant, func() error {
		wrong = s.campaigns.Check(change, c).Err()
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("simulate campaign: %w", err)
	}
	return s.campaigns.complete(change, c.Tenant).on(c), wrong
}

// simulation is a simulation in progress.
type simulation struct {
	*Simulator
	campaign broadcast.Campaign
	planner  *Planner
	sooner   *Planner // for the first of the better starts
	now      time.Time
	others   bool // the tenant has other campaigns
	totals   *totals
	starts   *booking.Starts

	usage   *booking.CapUsage   // including what would be booked; nil: the tenant has no caps
	counted map[booking.Day]int // without what would be booked

	examined map[string]*examined // by recipient of a chunk
}

// begin reads the inputs that are the same for all chunks.
func (s *Simulator) begin(ctx context.Context, c broadcast.Campaign, caps push.Caps) (*simulation, error) {
	x := &simulation{Simulator: s, campaign: c, totals: newTotals(), counted: map[booking.Day]int{}, examined: map[string]*examined{}}
	if s.cfg.Speed != nil {
		x.totals.drain.every, x.totals.drain.segmented = s.cfg.Speed(c.Tenant, c.Channel)
	}
	if s.campaigns.cfg.size(c.Tenant, c.Channel, nil) != nil {
		x.totals.Segments = &Segments{ByCount: map[int]int{}}
	}
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
	if s.cfg.Behind != nil {
		behind, err := s.cfg.Behind(ctx, c.Tenant, c.Channel)
		if err != nil {
			return nil, err
		}
		for i, d := range behind {
			x.totals.drain.free[i] = x.now.Add(d)
		}
	}
	x.planner = NewPlanner(s.pushes, c, message, x.now)
	x.starts = booking.NewStarts(firstStart(&c, x.now), x.usage)
	x.sooner = x.planner.at(x.starts.First())
	return x, nil
}

// firstStart returns the first time to try as a better start: the campaign's start, or now if that is past. A local
// time begins where clocks are furthest ahead of UTC.
func firstStart(c *broadcast.Campaign, now time.Time) time.Time {
	planned := c.SendAt
	if !c.LocalTime.IsZero() {
		planned = c.LocalTime.Add(-14 * time.Hour)
	}
	if planned.Before(now) {
		return now
	}
	return planned
}

// lastStart returns the last start whose spread still ends by latest; zero: there is no limit.
func lastStart(c *broadcast.Campaign) time.Time {
	if c.Latest.IsZero() {
		return time.Time{}
	}
	return c.Latest.Add(min(0, quota.Second-c.Spread))
}

// lane simulates the recipients in some shards.
func (x *simulation) lane(ctx context.Context, shards push.Lane, each func([]Simulated) error) error {
	o := Chunk{
		Part: campaigns.Part{Campaign: x.campaign, Shards: shards, After: campaigns.BeforeShards(shards)},
		File: x.cfg.Policy, Now: x.now, Computing: x.campaigns.cfg.Computing, Plan: x.plan, Look: x.look,
	}
	if x.usage != nil {
		o.Room = func(context.Context, []booking.Draft) (*booking.CapUsage, error) { return x.usage, nil }
	}
	for more := true; more; {
		clear(x.examined)
		done, err := o.Decide(ctx, x.store.CampaignTrial)
		if uncounted, ok := errors.AsType[*UncountedError](err); ok {
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

// result completes the result.
func (x *simulation) result(ctx context.Context) (*Simulation, error) {
	sum := &x.totals.Simulation
	sum.FinishesAt, sum.WouldExpire = x.totals.drain.end()
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
