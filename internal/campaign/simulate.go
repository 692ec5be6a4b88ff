package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
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
	c, err := s.draft(ctx, tenant, id)
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
	now, err := s.draft(ctx, tenant, id)
	if err == nil && !now.UpdatedAt.Equal(c.UpdatedAt) {
		err = &push.CampaignStateError{Campaign: now, Detail: "the campaign was changed while it was simulated; simulate it again"}
	}
	if err != nil {
		return nil, err
	}
	return x.result(ctx)
}

// draft reads a campaign that can be simulated.
func (s *Simulator) draft(ctx context.Context, tenant, id uuid.UUID) (push.Campaign, error) {
	c, err := s.store.Campaign(ctx, tenant, id)
	if err == nil && c.Status != push.CampaignDraft {
		err = &push.CampaignStateError{Campaign: c, Detail: fmt.Sprintf("the campaign is %s; it can only be simulated while it is a draft", c.Status)}
	}
	if err == nil {
		_, err = push.CampaignStart.On(c)
	}
	if err == nil {
		err = s.campaigns.checkStart(c)
	}
	return c, err
}

// simulation is one under way.
type simulation struct {
	*Simulator
	campaign push.Campaign
	planner  *Planner
	sooner   *Planner // of the first of the better starts
	now      time.Time
	others   bool // the tenant has other campaigns
	tally    *tally
	starts   *booking.Starts

	usage   *booking.CapUsage   // with what would be booked; nil: the tenant has no caps
	counted map[booking.Day]int // without it

	looks map[string]*look // at the recipients of a chunk
}

// look is what is seen of a recipient.
type look struct {
	draft    booking.Draft
	behind   time.Duration
	invalid  string // what is invalid about the time of the draft, which is only looked at
	inTheWay []quota.Violation
	landings booking.Landings
}

// begin reads what all of a simulation is decided by.
func (s *Simulator) begin(ctx context.Context, c push.Campaign, caps push.Caps) (*simulation, error) {
	x := &simulation{Simulator: s, campaign: c, tally: newTally(), counted: map[booking.Day]int{}, looks: map[string]*look{}}
	message, err := s.cfg.Parse(&c)
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

// plan plans a line as a start does, and has its view show what the better starts need. A line that is invalid only because of its
// time may be accepted at one of these.
func (x *simulation) plan(line push.CampaignLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error) {
	bulkhead.Yield()
	message, err := x.planner.render(line, attributes)
	if err != nil {
		return booking.Draft{}, err
	}
	l := &look{behind: Offset(line.Recipient, x.campaign.Spread)}
	d, err := x.planner.draft(line, of, message)
	if err != nil {
		var untimely error
		if d, untimely = x.sooner.draft(line, of, message); untimely != nil {
			return d, err
		}
		d.LookOnly, l.invalid = true, err.Error()
	}
	x.starts.Widen(&d, l.behind)
	l.draft = d
	x.looks[line.Recipient] = l
	return d, nil
}

// look sees what is in the way of a recipient, and of the better starts.
func (x *simulation) look(who quota.Recipient, of booking.Standing, view quota.View) {
	l := x.looks[who.ID]
	p, kind := &l.draft.Push, booking.KindOf(&l.draft.Push)
	if of.Person.OptOuts.Of(kind).Any() || l.draft.NeedsAddress && p.To == "" && of.Person.Addresses[p.Channel] == "" {
		return // at any time
	}
	policy := of.Policy(kind)
	l.inTheWay = policy.Violations(view.Timeline, p.SendAt)
	l.landings = x.starts.Look(l.draft, l.behind, policy, &view)
}

// count counts the recipients of a day, without those of the campaign.
func (x *simulation) count(ctx context.Context, day booking.Day) (n int, err error) {
	n, known := x.counted[day]
	if !known {
		n, err = x.store.Recipients(ctx, x.campaign.Tenant, day, x.usage.RecipientsPerDay+1)
		x.counted[day] = n
	}
	return n, err
}

// add counts what was decided about a chunk.
func (x *simulation) add(ctx context.Context, shards push.Lane, decided []store.CampaignDecided) ([]Simulated, error) {
	all, conflicts := make([]Simulated, 0, len(decided)), map[string][]quota.Booking{}
	var every []quota.Booking
	for i := range decided {
		d := &decided[i]
		if d.Erased {
			continue
		}
		var rules []string
		l := x.looks[d.Line.Recipient]
		if d.Invalid != "" {
			l = &look{}
		}
		if l.invalid != "" {
			d.Invalid = l.invalid
		}
		for _, v := range l.inTheWay {
			rules = append(rules, v.Rule.Name)
		}
		all = append(all, x.tally.add(d, rules))
		switch d.Decision.Outcome {
		case booking.Booked, booking.NoPlace, booking.OverCap, booking.Undecided:
			if err := x.starts.Add(l.landings, func(day booking.Day) (int, error) { return x.count(ctx, day) }); err != nil {
				return nil, err
			}
		}
		if x.others && (d.Deferred() || d.Decision.Outcome == booking.NoPlace) {
			for _, v := range l.inTheWay {
				conflicts[d.Line.Recipient] = append(conflicts[d.Line.Recipient], v.Conflicts...)
			}
			every = append(every, conflicts[d.Line.Recipient]...)
		}
		x.use(&d.Decision)
	}
	of, err := x.store.CampaignsOf(ctx, x.campaign.Tenant, shards, every)
	for _, bookings := range conflicts {
		var with []uuid.UUID
		for _, b := range bookings {
			if id, ok := of[b.ID]; ok {
				with = append(with, id)
			}
		}
		x.tally.collide(with)
	}
	return all, err
}

// use takes the room of what would be booked from the caps.
func (x *simulation) use(v *booking.Decision) {
	if x.usage == nil || v.Outcome != booking.Booked {
		return
	}
	x.usage.Pending++
	if v.NewRecipientOfDay {
		x.usage.Days[booking.DayOf(v.Push.SendAt)]++
	}
}

// result is what was counted.
func (x *simulation) result(ctx context.Context) (*Simulation, error) {
	sum := &x.tally.Simulation
	sum.CollidesWith, sum.BetterStarts = x.tally.most(), x.starts.Better(sum.Accepted, maxBetterStarts)
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
