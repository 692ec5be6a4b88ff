package booking

import (
	"cmp"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
)

// The starts that are looked at: the quarters of an hour of a day.
const (
	StartStep = 15 * time.Minute
	allStarts = int(24 * time.Hour / StartStep)
)

// Starts counts how many drafts of a campaign would be accepted at their time if it began at other times than it is to: at one
// of the quarters of an hour of the next day. The drafts come in the order in which they are decided.
type Starts struct {
	first    time.Time
	accepted [allStarts]int
	usage    []*CapUsage // of each start; nil: there are no caps
}

// NewStarts returns the starts from a time on. usage is that of the tenant before the campaign; nil: there are no caps.
func NewStarts(from time.Time, usage *CapUsage) *Starts {
	s := &Starts{first: from.Truncate(StartStep)}
	if s.first.Before(from) {
		s.first = s.first.Add(StartStep)
	}
	for range allStarts {
		if usage != nil {
			s.usage = append(s.usage, usage.clone())
		}
	}
	return s
}

// First is the first of the starts.
func (s *Starts) First() time.Time { return s.first }

// Widen has the view of a draft show what the starts need. It is so far behind the first send time of the campaign.
func (s *Starts) Widen(d *Draft, behind time.Duration) {
	d.From = s.first.Add(behind)
	d.Until = d.From.Add(time.Duration(allStarts-1) * StartStep)
	d.Far = d.Far || s.usage != nil // where it would be moved from each start matters to the caps
}

// Landings are where a draft would be sent for each start.
type Landings struct {
	free []bool    // its own time is
	at   []landing // if there are caps
}

// landing is what a draft takes of the tenant's caps.
type landing struct {
	at           time.Time // zero: it is refused
	newRecipient bool
}

// Look says where a draft would be sent, beside the bookings of a view that was widened for it.
func (s *Starts) Look(d Draft, behind time.Duration, policy quota.Policy, view *quota.View) (l Landings) {
	l.free = make([]bool, allStarts)
	first := s.first.Add(behind)
	policy.FreeAt(view.Timeline, first, StartStep, l.free)
	latest := d.Last
	if !d.Latest.IsZero() {
		latest = d.Latest
	}
	for i := range l.free {
		if at := first.Add(time.Duration(i) * StartStep); at.After(latest) {
			l.free[i] = false
		} else if s.usage != nil {
			l.at = append(l.at, s.landing(d, at, l.free[i], policy, view))
		}
	}
	return l
}

// landing is that of a draft for a time, which is free or not.
func (s *Starts) landing(d Draft, at time.Time, free bool, policy quota.Policy, view *quota.View) landing {
	if !free {
		d.Push.SendAt = at
		var outcome Outcome
		if at, outcome = d.freeTime(policy, view); outcome != Booked {
			return landing{}
		}
	}
	return landing{at, s.usage[0].newRecipientOfDay(view, at)}
}

// Add counts a draft that is decided. count says how many recipients had pushes on a day before the campaign.
func (s *Starts) Add(l Landings, count func(Day) (int, error)) error {
	for i, free := range l.free {
		taken := true
		if i < len(l.at) && !l.at[i].at.IsZero() {
			var err error
			if taken, err = s.take(s.usage[i], l.at[i], count); err != nil {
				return err
			}
		}
		if free && taken {
			s.accepted[i]++
		}
	}
	return nil
}

// take takes room of the caps, if they have it.
func (s *Starts) take(u *CapUsage, l landing, count func(Day) (int, error)) (taken bool, err error) {
	outcome, capped := u.take(l.at, l.newRecipient)
	if outcome == Uncounted {
		if u.Days[capped.Day], err = count(capped.Day); err != nil {
			return false, err
		}
		outcome, _ = u.take(l.at, l.newRecipient)
	}
	return outcome == Booked, nil
}

// Start is when a campaign could begin, and how many would be accepted at their time then.
type Start struct {
	At       time.Time
	Accepted int
}

// Better lists the starts up to a time, so many at most, at which more than some would be accepted: the best first, and of those
// that are as good the earliest. The time may be zero: all starts are looked at.
func (s *Starts) Better(than int, until time.Time, most int) []Start {
	better := []Start{}
	for i, n := range s.accepted {
		at := s.first.Add(time.Duration(i) * StartStep)
		if n > than && (until.IsZero() || !at.After(until)) {
			better = append(better, Start{at, n})
		}
	}
	slices.SortStableFunc(better, func(a, b Start) int { return cmp.Compare(b.Accepted, a.Accepted) })
	return better[:min(len(better), most)]
}
