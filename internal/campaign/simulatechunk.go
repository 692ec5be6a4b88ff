package campaign

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// examined holds what a simulation read about a recipient.
type examined struct {
	draft    booking.Draft
	behind   time.Duration
	invalid  string // the fault of the draft's time, if only better starts are examined
	segments int    // of its text; 0: it is no text message
	inTheWay []quota.Violation
	landings booking.Landings
}

// plan plans a line as a start does, and widens its view for the better starts. A line that is invalid only because of
// its time may be accepted at one of these.
func (x *simulation) plan(line broadcast.AudienceLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error) {
	bulkhead.Yield()
	l := &examined{behind: Offset(line.Recipient, x.campaign.Spread)}
	d, err := x.planner.Plan(line, of, attributes)
	if err != nil {
		var untimely error
		if d, untimely = x.sooner.Plan(line, of, attributes); untimely != nil {
			return d, err
		}
		d.LookOnly, l.invalid = true, err.Error()
	}
	x.starts.Widen(&d, l.behind)
	if size := x.campaigns.cfg.size(x.campaign.Tenant, x.campaign.Channel, d.Push.Message); size != nil {
		l.segments = size.Segments
	}
	l.draft = d
	x.examined[line.Recipient] = l
	return d, nil
}

// look finds the conflicts of a recipient's time, and of the better starts.
func (x *simulation) look(who quota.Recipient, of booking.Standing, view quota.View) {
	l := x.examined[who.ID]
	p, kind := &l.draft.Push, booking.KindOf(&l.draft.Push)
	if of.Person.OptOuts.Of(kind).Any() || l.draft.NeedsAddress && p.To == "" && of.Person.Addresses[p.Channel] == "" {
		return // at any time
	}
	policy := of.Policy(kind)
	l.inTheWay = policy.Violations(view.Timeline, p.SendAt)
	l.landings = x.starts.Look(l.draft, l.behind, policy, &view)
}

// count counts the recipients of a day, without the campaign's.
func (x *simulation) count(ctx context.Context, day booking.Day) (n int, err error) {
	n, known := x.counted[day]
	if !known {
		n, err = x.store.Recipients(ctx, x.campaign.Tenant, day, x.usage.RecipientsPerDay+1)
		x.counted[day] = n
	}
	return n, err
}

// add counts the decisions about a chunk.
func (x *simulation) add(ctx context.Context, shards push.Lane, decided []campaigns.Decided) ([]Simulated, error) {
	all, conflicts := make([]Simulated, 0, len(decided)), map[string][]quota.Booking{}
	var every []quota.Booking
	for i := range decided {
		d := &decided[i]
		if d.Erased {
			continue
		}
		var rules []string
		l := x.examined[d.Recipient]
		if d.Invalid != "" {
			l = &examined{}
		}
		if l.invalid != "" {
			d.Invalid = l.invalid
		}
		for _, v := range l.inTheWay {
			rules = append(rules, v.Rule.Name)
		}
		all = append(all, x.totals.add(d, rules, l.segments))
		switch d.Decision.Outcome {
		case booking.Booked, booking.NoPlace, booking.OverCap, booking.Undecided:
			if err := x.starts.Add(l.landings, func(day booking.Day) (int, error) { return x.count(ctx, day) }); err != nil {
				return nil, err
			}
		}
		if x.others && (d.Deferred() || d.Decision.Outcome == booking.NoPlace) {
			for _, v := range l.inTheWay {
				conflicts[d.Recipient] = append(conflicts[d.Recipient], v.Conflicts...)
			}
			every = append(every, conflicts[d.Recipient]...)
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
		x.totals.collide(with)
	}
	return all, err
}

// use adds what would be booked to the usage of the caps.
func (x *simulation) use(v *booking.Decision) {
	if x.usage == nil || v.Outcome != booking.Booked {
		return
	}
	x.usage.Pending++
	if v.NewRecipientOfDay {
		x.usage.Days[booking.DayOf(v.Push.SendAt)]++
	}
}
