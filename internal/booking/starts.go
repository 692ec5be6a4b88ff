package booking

import (
	"cmp"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
)

// The candidate starts: the quarters of an hour of a day.
const (
	StartStep = 15 * time.Minute
	allStarts = int(24 * time.Hour / StartStep)
)

// Starts counts how many drafts of a campaign would be accepted at their time if the campaign began at another time: at
// one of the quarters of an hour of the next day. The drafts come in the order of their decisions.
type Starts struct {
	first    time.Time
	accepted [allStarts]int
	usage    []*CapUsage // for each start; nil: there are no caps
}

// NewStarts returns the starts from a time on. usage is the tenant's usage before the campaign; nil: there are no caps.
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

// First returns the first of the starts.
func (s *Starts) First() time.Time { return s.first }

// Widen extends the view of a draft to the range that the starts need. behind is the draft's delay after the first send
// time of the campaign.
func (s *Starts) Widen(d *Draft, behind time.Duration) {
	d.From = s.first.Add(behind)
	d.Until = d.From.Add(time.Duration(allStarts-1) * StartStep)
	d.Far = d.Far || s.usage != nil // the caps depend on where each start would move it
}

// Landings are the send times of a draft for each start.
type Landings struct {
	free []bool    // whether its own time is free
	at   []landing // only if there are caps
}

// landing is the send time of a draft and its use of the tenant's caps.
type landing struct {
	at           time.Time // zero: it is refused
	newRecipient bool
}

// Look returns the send times of a draft for each start, given a view that Widen has prepared.
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

// landing returns the landing of a draft at a time, which is free or not.
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

// Add counts a decided draft. count returns how many recipients had pushes on a day before the campaign.
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

// take takes room of the caps if there is enough.
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

// Start is a possible start of a campaign, and how many recipients would be accepted at their time.
type Start struct {
	At       time.Time
	Accepted int
}

// Better returns up to most starts, not after until, with more accepted recipients than than: the best first, and the
// earliest of equal ones first. A zero until means no bound.
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
