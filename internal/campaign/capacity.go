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

// CapacityQuery asks how many recipients of an audience find a place in each hour.
type CapacityQuery struct {
	From, Until time.Time // whole hours
	Sample      int       // maximum number of recipients to read
	Zone        *time.Location
}

// Capacity counts the recipients of a draft that would find a place if it began at each hour.
type Capacity struct {
	Recipients        int64 // in the audience
	Sample            int   // number of recipients read
	OptedOut, Invalid int   // of the sample; they find no place

	From, Until time.Time // the hours examined: without hours that have begun, or that are beyond the horizon
	Free        []int     // per hour
	Days        []CapacityDay
}

// CapacityDay counts the recipients that find a place in at least one hour that begins in a day of the zone.
type CapacityDay struct {
	Begin time.Time
	Free  int
}

// ErrNoHour: all of the hours have begun, or are beyond the horizon.
var ErrNoHour = errors.New("must be after the start of an hour that is ahead and within the scheduling horizon")

// Capacity examines a sample of a draft's recipients: the ids with the lowest hashes, so that each call reads the same
// sample. It ignores the tenant's caps, and the draft's times except for the spread. Its errors are [push.ErrNotFound],
// [broadcast.StateError] and [ErrNoHour].
func (s *Simulator) Capacity(ctx context.Context, tenant, id uuid.UUID, q CapacityQuery) (*Capacity, error) {
	c, err := s.campaigns.Campaign(ctx, tenant, id)
	if err == nil && c.Status != broadcast.Draft {
		err = &broadcast.StateError{Campaign: c, Detail: fmt.Sprintf("the campaign is %s; its capacity is only available while it is a draft", c.Status)}
	}
	if err == nil {
		_, err = broadcast.Start.On(c)
	}
	if err != nil {
		return nil, err
	}
	c.Latest, c.OnConflict = time.Time{}, reject
	x, err := s.begin(ctx, c, push.Caps{})
	if err != nil {
		return nil, fmt.Errorf("capacity of campaign: %w", err)
	}
	f, err := newFinder(x, q)
	if err != nil {
		return nil, err
	}
	for _, shards := range s.store.CampaignLanes() {
		if err := f.lane(ctx, shards); err != nil {
			return nil, fmt.Errorf("capacity of campaign: %w", err)
		}
	}
	return &f.Capacity, nil
}

// finder finds the free hours of recipients.
type finder struct {
	Capacity
	x       *simulation
	planner *Planner // for a start at the first hour
	most    int
	dayOf   []int                // the index of each hour's day
	drafts  map[string]freeDraft // by recipient of a chunk
}

// freeDraft is a recipient's push, and its offset from the start.
type freeDraft struct {
	draft  booking.Draft
	behind time.Duration
	seen   bool
	free   []bool // nil: the recipient opted out, or has no address
}

func newFinder(x *simulation, q CapacityQuery) (*finder, error) {
	f := &finder{x: x, most: q.Sample, drafts: map[string]freeDraft{}}
	f.From, f.Until, f.Recipients = q.From, q.Until, x.campaign.Size
	if f.From.Before(x.now) {
		f.From = x.now.Add(time.Hour - 1).Truncate(time.Hour)
	}
	if end := x.now.Add(x.campaigns.cfg.MaxHorizon - x.campaign.Spread).Truncate(time.Hour); f.Until.After(end) {
		f.Until = end
	}
	if !f.From.Before(f.Until) {
		return nil, ErrNoHour
	}
	f.planner = x.planner.at(f.From)
	f.Free = make([]int, int(f.Until.Sub(f.From)/time.Hour))
	for i := range f.Free {
		at := f.From.Add(time.Duration(i) * time.Hour).In(q.Zone)
		y, m, d := at.Date()
		if n := len(f.Days); n == 0 || !sameDay(f.Days[n-1].Begin, at) {
			f.Days = append(f.Days, CapacityDay{Begin: time.Date(y, m, d, 0, 0, 0, 0, q.Zone)})
		}
		f.dayOf = append(f.dayOf, len(f.Days)-1)
	}
	return f, nil
}

func sameDay(a, b time.Time) bool { return a.Format(time.DateOnly) == b.Format(time.DateOnly) }

// lane examines the recipients in some shards, until the sample is complete.
func (f *finder) lane(ctx context.Context, shards push.Lane) error {
	o := Chunk{
		Part: campaigns.Part{Campaign: f.x.campaign, Shards: shards, After: campaigns.BeforeShards(shards)},
		File: f.x.cfg.Policy, Now: f.x.now, Computing: f.x.campaigns.cfg.Computing, Plan: f.plan, Look: f.look,
	}
	for more := true; more && f.Sample < f.most; {
		clear(f.drafts)
		done, err := o.Decide(ctx, f.x.store.CampaignTrial)
		if err != nil {
			return err
		}
		for i := range done.Decided[:min(len(done.Decided), f.most-f.Sample)] {
			f.add(&done.Decided[i])
		}
		o.After, more = done.Next, done.More
	}
	return nil
}

// plan plans the push of a line, which is not booked.
func (f *finder) plan(line broadcast.AudienceLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error) {
	bulkhead.Yield()
	d, err := f.planner.Plan(line, of, attributes)
	if err != nil {
		return d, err
	}
	one := freeDraft{behind: Offset(line.Recipient, f.x.campaign.Spread)}
	d.LookOnly, d.From, d.Until = true, f.From.Add(one.behind), f.Until.Add(one.behind)
	one.draft = d
	f.drafts[line.Recipient] = one
	return d, nil
}

// look finds the hours when a recipient has a place.
func (f *finder) look(who quota.Recipient, of booking.Standing, view quota.View) {
	one := f.drafts[who.ID]
	p, kind := &one.draft.Push, booking.KindOf(&one.draft.Push)
	one.seen = true
	if !of.Person.OptOuts.Of(kind).Any() {
		one.free = make([]bool, len(f.Free))
		if !one.draft.NeedsAddress || p.To != "" || of.Person.Addresses[p.Channel] != "" {
			of.Policy(kind).FreeAt(view.Timeline, f.From.Add(one.behind), time.Hour, one.free)
		} else {
			one.seen = false // there is no push
		}
	}
	f.drafts[who.ID] = one
}

// add counts a recipient, unless it was erased.
func (f *finder) add(d *campaigns.Decided) {
	if d.Erased {
		return
	}
	f.Sample++
	one := f.drafts[d.Recipient]
	switch {
	case d.Invalid != "" || !one.seen:
		f.Invalid++
	case one.free == nil:
		f.OptedOut++
	}
	day := -1
	for i, free := range one.free {
		if !free {
			continue
		}
		f.Free[i]++
		if f.dayOf[i] != day {
			day = f.dayOf[i]
			f.Days[day].Free++
		}
	}
}
