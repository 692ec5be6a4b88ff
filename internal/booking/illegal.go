package booking

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
)

// What was accepted is judged afterwards by what was in force then, as far as the record says it. Where it leaves open which
// policy that was, or which of two bookings was there first, a booking is legal if any answer makes it so.

// History is the policies that a tenant has had, in the order in which they came into force.
type History struct {
	Versions []Version
	File     Terms // of before the first, and of versions without terms
	Cut      bool  // there were more before the first
}

// Version is a policy of a tenant.
type Version struct {
	At    time.Time // when it was written; it is in force from its commit on
	Terms Terms     // nil: the file's
}

// commitTime is how long what is decided may take to be committed, before or behind the time that the record states.
const commitTime = time.Minute

// during returns the terms that may have been in force between two times. It is false if they are not known.
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

// Checked is a place in a recipient's quota, or a send, whose legality is asked.
type Checked struct {
	quota.Booking           // with its kind. The time is the promised one, or that at which the provider had it at the latest
	Began         time.Time // of a send: when it began; its end is in its booking
	Since, Until  time.Time // between these it was accepted, or begun
	Check        bool      // it is asked about; others only count
}

// Broken is something that was not legal.
type Broken struct {
	ID        uuid.UUID
	At        time.Time // when it was promised, or began
	Violation quota.Violation
}

// IllegalBookings returns the bookings of one recipient that had no place when they were accepted. All hold places now. It says
// nothing of those that were accepted before the recipient was described anew, which was at a time: that has no record.
func (h History) IllegalBookings(of quota.Person, described time.Time, held []Checked) []Broken {
	byEnd := slices.Clone(held)
	slices.SortFunc(byEnd, func(a, b Checked) int { return cmp.Or(a.Until.Compare(b.Until), slices.Compare(a.ID[:], b.ID[:])) })
	slices.SortFunc(held, func(a, b Checked) int { return cmp.Or(a.together(b), slices.Compare(a.ID[:], b.ID[:])) })
	var (
		line     quota.Timeline
		together []quota.Booking // of one transaction and one kind: each has seen those before it, whichever they were
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
		for ; n < len(byEnd) && byEnd[n].Until.Before(j.Since); n++ { // was there before
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

// together compares what two bookings say of their transaction and their kind.
func (j Checked) together(with Checked) int {
	return cmp.Or(j.Since.Compare(with.Since), j.Until.Compare(with.Until), cmp.Compare(j.Kind.Channel, with.Kind.Channel), cmp.Compare(j.Kind.Category, with.Kind.Category))
}

// IllegalSends returns the sends to one recipient that the delivery gate must not have let through. They are in the order in
// which they began, and none of them was refused by its provider. It says nothing of those before the recipient was described
// anew.
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

// illegal reports whether all terms that may have been in force forbid a push at a time, beside what there was, and returns
// what is broken of the last of them.
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

// AgainstOptOuts returns those that went against opt-outs which were known before them, as the recipient was described at a time.
func AgainstOptOuts(out OptOuts, described time.Time, all []Checked) (unwanted []Checked) {
	for _, j := range all {
		if j.Check && !described.IsZero() && j.Since.Add(-commitTime).After(described) && out.Of(j.Kind).Any() {
			unwanted = append(unwanted, j)
		}
	}
	return unwanted
}
