package booking

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
)

// The audit checks accepted bookings and sends against the rules of their time, as far as the record shows them. If the
// policy of that time, or the order of two bookings, is uncertain, a booking is legal if any possibility makes it
// legal.

// History lists the policies of a tenant, in the order of their commits.
type History struct {
	Versions []Version
	File     Terms // the file's: before the first version, and for versions without terms
	Cut      bool  // older versions are missing
}

// Version is one policy of a tenant.
type Version struct {
	At    time.Time // when it was written; it applies from its commit on
	Terms Terms     // nil: the file's
}

// commitTime bounds the time between the recorded time of a decision and its commit, in both directions.
const commitTime = time.Minute

// during returns the terms that may have applied between two times. known is false if the record does not reach back so
// far.
func (h History) during(from, until time.Time) (all []Terms, known bool) {
	from, until = from.Add(-commitTime), until.Add(commitTime)
	first, _ := slices.BinarySearchFunc(h.Versions, from, func(v Version, t time.Time) int { return cmp.Or(v.At.Compare(t), -1) })
	if first == 0 {
		if h.Cut {
			return nil, false
		}
		all = append(all, OrNone(h.File))
	}
	for _, v := range h.Versions[max(0, first-1):] {
		if v.At.After(until) {
			break
		}
		all = append(all, OrNone(v.Terms, h.File))
	}
	return all, true
}

// Checked is a booking or a send whose legality is checked.
type Checked struct {
	quota.Booking           // with its kind; the time is the promised one, or the latest one when the provider can have received it
	Began         time.Time // of a send: its start; the booking has its end
	Since, Until  time.Time // it was accepted, or begun, between these times
	Check         bool      // check it; others only count
}

// Broken is an illegal booking or send.
type Broken struct {
	ID        uuid.UUID
	At        time.Time // the promised time, or the start
	Violation quota.Violation
}

// IllegalBookings returns the bookings of one recipient that had no place when they were accepted. held are all current
// bookings. Bookings accepted before the recipient's last change are skipped: earlier versions are not recorded.
func (h History) IllegalBookings(of quota.Person, described time.Time, held []Checked) []Broken {
	byEnd := slices.Clone(held)
	slices.SortFunc(byEnd, func(a, b Checked) int { return cmp.Or(a.Until.Compare(b.Until), slices.Compare(a.ID[:], b.ID[:])) })
	slices.SortFunc(held, func(a, b Checked) int { return cmp.Or(a.together(b), slices.Compare(a.ID[:], b.ID[:])) })
	var (
		line     quota.Timeline
		together []quota.Booking // of one transaction and one kind: each saw the ones before it, in an unknown order
		broken   []Broken
		n        int
	)
	for i, j := range held {
		if i > 0 && held[i-1].together(j) != 0 {
			for _, b := range together {
				line = line.Remove(b)
			}
			together = nil
		}
		for ; n < len(byEnd) && byEnd[n].Until.Before(j.Since); n++ { // committed before
			line = line.Insert(byEnd[n].Booking)
		}
		if j.Check && (described.IsZero() || j.Since.Add(-commitTime).After(described)) {
			if v, illegal := h.illegal(of, j, line, j.At); illegal {
				broken = append(broken, Broken{j.ID, j.At, v})
			}
		}
		line, together = line.Insert(j.Booking), append(together, j.Booking)
	}
	return broken
}

// together orders bookings by transaction and kind. It returns 0 if they share both.
func (j Checked) together(with Checked) int {
	return cmp.Or(j.Since.Compare(with.Since), j.Until.Compare(with.Until), cmp.Compare(j.Kind.Channel, with.Kind.Channel), cmp.Compare(j.Kind.Category, with.Kind.Category))
}

// IllegalSends returns the sends to one recipient that the delivery gate must not have let through. sends are sorted by
// their start and contain none that the provider refused. Sends before the recipient's last change are skipped.
func (h History) IllegalSends(of quota.Person, described time.Time, sends []Checked) (broken []Broken) {
	var line quota.Timeline
	for _, j := range sends {
		if j.Check && (described.IsZero() || j.Since.Add(-commitTime).After(described)) {
			if v, illegal := h.illegal(of, j, line, j.Began); illegal {
				broken = append(broken, Broken{j.ID, j.Began, v})
			}
		}
		line = line.Insert(j.Booking)
	}
	return broken
}

// illegal reports whether all terms that may have applied forbid a push at a time, given the earlier ones in line. v is
// a violation of the last of these terms.
func (h History) illegal(of quota.Person, j Checked, line quota.Timeline, at time.Time) (v quota.Violation, illegal bool) {
	all, known := h.during(j.Since, j.Until)
	if !known {
		return v, false
	}
	for _, t := range all {
		policy := t.For(of, j.Kind)
		if policy.Allows(line, at) {
			return v, false
		}
		v = policy.Violations(line, at)[0]
	}
	return v, true
}

// AgainstOptOuts returns the bookings or sends that violated opt-outs which were known before. described is the
// recipient's last change.
func AgainstOptOuts(out OptOuts, described time.Time, all []Checked) (unwanted []Checked) {
	for _, j := range all {
		if j.Check && !described.IsZero() && j.Since.Add(-commitTime).After(described) && out.Of(j.Kind).Any() {
			unwanted = append(unwanted, j)
		}
	}
	return unwanted
}
