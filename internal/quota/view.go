package quota

import "time"

// Second is the resolution of promised send times.
const Second = time.Second

// View is what is known of one recipient's bookings: all those strictly between From and Until. A zero From or Until
// means without end.
type View struct {
	From, Until time.Time
	Timeline
}

var (
	beginningOfTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	endOfTime       = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// longest is how far a view reaches at most: further than any window and horizon, and not so far that times overflow.
const longest = 100 * 365 * 24 * time.Hour

// Around returns the empty view that reaches far enough around t to decide about t, and times further out the larger
// it is: 1 suffices for the decision itself.
func (p Policy) Around(t time.Time, times int) View { return Around(t, p.Reach(), times) }

// Around is [Policy.Around] of a policy that reaches so far.
func Around(t time.Time, reach time.Duration, times int) View {
	if reach < longest/time.Duration(times) {
		reach *= time.Duration(times)
	} else {
		reach = longest
	}
	return View{From: t.Add(-reach), Until: t.Add(reach)}
}

// Widen has the view begin no later than from, and end no earlier than until.
func (v *View) Widen(from, until time.Time) {
	if from.Before(v.From) {
		v.From = from
	}
	if until.After(v.Until) {
		v.Until = until
	}
}

// Shows reports whether the view has all bookings that matter to t. None does under rules that count none.
func (v View) Shows(t time.Time, reach time.Duration) bool {
	return reach == 0 || (v.From.IsZero() || !t.Add(-reach).Before(v.From)) &&
		(v.Until.IsZero() || !t.Add(reach).After(v.Until))
}

// Decide says whether t can be booked and, if not, which rules forbid it, and the nearest whole seconds that are
// free: Next from t on, Previous before t but after now. It is incomplete if the view ends before they are found; ask
// again with a wider view.
func (p Policy) Decide(v View, t, now time.Time) (d Decision, complete bool) {
	return (&Decider{Policy: p, Now: now}).Decide(v, t)
}

// Decider decides as [Policy.Decide] does, about many times of one view: where the whole time between two of them is
// blocked, the free times around it are looked for once. Call Changed when the view has changed.
type Decider struct {
	Policy Policy
	Now    time.Time

	next, previous stretch
}

// stretch is a time in which nothing is free between two times; free is the free time at its end, if there is any.
type stretch struct {
	from, until time.Time
	free        bool
}

// covers reports whether the stretch says what is free next to t.
func (s stretch) covers(t time.Time) bool {
	return s.free && !t.Before(s.from) && !t.After(s.until)
}

// Changed says that the view is another one now.
func (x *Decider) Changed() { x.next, x.previous = stretch{}, stretch{} }

// Decide is [Policy.Decide].
func (x *Decider) Decide(v View, t time.Time) (d Decision, complete bool) {
	p := x.Policy
	d.Violations = p.Violations(v.Timeline, t)
	complete = v.Shows(t, p.Reach())
	if d.Allowed() {
		d.Next, d.Previous = t, t
		return d, complete
	}
	if !x.next.covers(t) {
		next, ok := p.Next(v.Timeline, t, Second)
		x.next = stretch{from: t, until: next, free: ok}
	}
	if !x.previous.covers(t) {
		previous, ok := p.Previous(v.Timeline, t, Second)
		x.previous = stretch{from: previous, until: t, free: ok}
	}
	if x.next.free {
		d.Next, complete = x.next.until, complete && v.Shows(x.next.until, p.Reach())
	}
	if x.previous.free && x.previous.from.After(x.Now) {
		d.Previous, complete = x.previous.from, complete && v.Shows(x.previous.from, p.Reach())
	}
	return d, complete
}
