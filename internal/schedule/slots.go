package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// Slots is a recipient's calendar: bookings and blocked intervals.
type Slots struct {
	Bookings []booking.Held
	Blocked  []quota.Interval // intervals without a free time, sorted by their beginning
	Next     time.Time        // where to continue if the calendar was cut for its size; zero: it is complete
}

// maxSlots is about the maximum number of bookings, and of blocked intervals, in Slots.
const maxSlots = 10_000

// Slots returns a recipient's bookings in [from, until], and the blocked intervals for a kind that overlap it. An empty
// channel means the default channel.
func (q *Quotas) Slots(ctx context.Context, r quota.Recipient, kind quota.Kind, from, until time.Time) (Slots, error) {
	kind.Channel = cmp.Or(kind.Channel, q.cfg.firstOf(r.Tenant))
	permit := &permit{}
	defer permit.end()
	held, of, complete, err := q.shown(ctx, permit, r, from, until)
	if err != nil {
		return Slots{}, fmt.Errorf("slots: %w", err)
	}
	return slotsOf(held, of.Policy(kind).Blocked(timelineOf(held, nil), from, until), from, until, complete, maxSlots), nil
}

// slotsOf returns the calendar of bookings and blocked intervals, with about most of each. known is the time up to
// which they were read.
func slotsOf(held []booking.Held, blocked []quota.Interval, from, until, known time.Time, most int) Slots {
	slots := Slots{
		Bookings: slices.DeleteFunc(held, func(h booking.Held) bool { return h.At.Before(from) || h.At.After(until) }),
		Blocked:  blocked,
	}
	if len(slots.Blocked) > most {
		slots.Blocked = joined(slots.Blocked)
	}
	slots.end(from, until, known, most)
	return slots
}

// shown reads the bookings of a calendar, and the bookings around it that affect it. The calendar is complete up to known.
func (q *Quotas) shown(
	ctx context.Context, permit *permit, r quota.Recipient, from, until time.Time,
) (held []booking.Held, of booking.Standing, known time.Time, err error) {
	reach := shownReach(q.terms(r.Tenant))
	held, of, few, err := q.store.BookingsBetween(ctx, r, q.cfg.Policy, from.Add(-reach), until.Add(reach))
	if err == nil && few && shownReach(of.Terms) > reach { // the policy has changed
		reach = shownReach(of.Terms)
		held, of, few, err = q.store.BookingsBetween(ctx, r, q.cfg.Policy, from.Add(-reach), until.Add(reach))
	}
	complete := until.Add(reach)
	if err == nil && !few {
		if err = permit.take(ctx, q.crowds, r.Tenant); err == nil {
			of, held, complete, err = q.manyBookings(ctx, r, from, until)
		}
	}
	if err != nil {
		return nil, of, until, err
	}
	return held, of, complete.Add(-shownReach(of.Terms)), nil
}

// shownReach returns how far around a calendar bookings are read. It is at least a second, because the bounds are
// exclusive.
func shownReach(t booking.Terms) time.Duration { return max(t.Reach(), quota.Second) }

// manyBookings reads the bookings of a calendar and of its surroundings, but no further than the calendar can go.
func (q *Quotas) manyBookings(ctx context.Context, r quota.Recipient, from, until time.Time) (of booking.Standing, held []booking.Held, complete time.Time, err error) {
	if of, err = q.store.Standing(ctx, r, q.cfg.Policy); err != nil {
		return of, nil, until, err
	}
	_, shown, err := q.store.Bookings(ctx, r, from.Add(-quota.Second), until, maxSlots+1, false)
	if err != nil {
		return of, nil, until, err
	}
	if first := from.Add(quota.Second); shown.Before(first) { // a calendar covers at least a second
		shown = first
	}
	reach := shownReach(of.Terms)
	held, complete, err = q.store.Bookings(ctx, r, from.Add(-reach), shown.Add(reach), booking.MaxRead, !of.Terms.Plain())
	return of, held, complete, err
}

// end cuts a calendar where it becomes too large, or where bookings were no longer read, but at least a second after
// its beginning.
func (p *Slots) end(from, until, known time.Time, most int) {
	var end time.Time
	earlier := func(t time.Time) {
		if end.IsZero() || t.Before(end) {
			end = t
		}
	}
	if len(p.Bookings) > most {
		earlier(p.Bookings[most].At)
	}
	if len(p.Blocked) > most {
		earlier(p.Blocked[most].From.Truncate(quota.Second))
	}
	if known.Before(until) {
		earlier(known)
	}
	if end.IsZero() {
		return
	}
	if first := from.Add(quota.Second); end.Before(first) {
		end = first
	}
	p.Next = end
	p.Bookings = slices.DeleteFunc(p.Bookings, func(h booking.Held) bool { return !h.At.Before(end) })
	p.Blocked = slices.DeleteFunc(p.Blocked, func(i quota.Interval) bool { return !i.From.IsZero() && !i.From.Before(end) })
}

// joined merges the overlapping intervals of each rule into one that lists no bookings.
func joined(blocked []quota.Interval) []quota.Interval {
	var all []quota.Interval
	last := map[string]int{} // index in all, by rule
	for _, i := range blocked {
		if n, ok := last[i.Rule.Name]; ok && i.From.Before(all[n].Until) {
			if i.Until.After(all[n].Until) {
				all[n].Until = i.Until
			}
			all[n].Bookings = nil
			continue
		}
		last[i.Rule.Name] = len(all)
		all = append(all, i)
	}
	return all
}
