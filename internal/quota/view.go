package quota

import "time"

// Second is the resolution of promised send times.
const Second = time.Second

// View holds all bookings of one recipient strictly between From and Until. A zero From or Until means no bound.
type View struct {
	From, Until time.Time
	Timeline
}

var (
	beginningOfTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	endOfTime       = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// longest is the maximum reach of a view: further than any window and horizon, and short enough to avoid overflow.
const longest = 100 * 365 * 24 * time.Hour

// Around returns an empty view with bounds at times × [Policy.Reach] on both sides of t. times = 1 suffices for a
// decision about t alone.
func (p Policy) Around(t time.Time, times int) View { return Around(t, p.Reach(), times) }

// Around is [Policy.Around] with the reach as a parameter.
func Around(t time.Time, reach time.Duration, times int) View {
	if reach < longest/time.Duration(times) {
		reach *= time.Duration(times)
	} else {
		reach = longest
	}
	return View{From: t.Add(-reach), Until: t.Add(reach)}
}

// Widen extends the view so that it includes from and until.
func (v *View) Widen(from, until time.Time) {
	if from.Before(v.From) {
		v.From = from
	}
	if until.After(v.Until) {
		v.Until = until
	}
}

// Shows reports whether the view contains all bookings that matter to t. If reach is 0, no booking does.
func (v View) Shows(t time.Time, reach time.Duration) bool {
	return reach == 0 || (v.From.IsZero() || !t.Add(-reach).Before(v.From)) &&
		(v.Until.IsZero() || !t.Add(reach).After(v.Until))
}

// Decide returns whether t can be booked and, if not, the rules that forbid it and the nearest free whole seconds: Next
// from t on, Previous before t but after now. It is incomplete if the view ends before they are found; then call it
// again with a wider view.
func (p Policy) Decide(v View, t, now time.Time) (d Decision, complete bool) {
	return (&Decider{Policy: p, Now: now}).Decide(v, t)
}

// Decider is [Policy.Decide] for many times of one view. It remembers the free times around a blocked stretch, so that
// they are searched once. Call Changed when the view has changed.
type Decider struct {
	Policy Policy
	Now    time.Time

	next, previous stretch
}

// stretch is a range of times without a free one in between; free is whether its end is free.
type stretch struct {
	from, until time.Time
	free        bool
}

// covers reports whether the free time of the stretch is also the nearest one to t.
func (s stretch) covers(t time.Time) bool {
	return s.free && !t.Before(s.from) && !t.After(s.until)
}

// Changed forgets all remembered free times because the view has changed.
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
