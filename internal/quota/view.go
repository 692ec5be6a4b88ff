package quota

import "time"

// Second is the resolution of promised send times.
const Second = time.Second

// View is what is known of one recipient's bookings: all those strictly
// between From and Until. A zero From or Until means without end.
type View struct {
	From, Until time.Time
	Bookings    []Booking
}

// Around returns the empty view that reaches far enough around t to decide
// about t, and times further out the larger it is: 1 suffices for the decision
// itself.
func (p Policy) Around(t time.Time, times int) View {
	reach := p.Reach() * time.Duration(times)
	return View{From: t.Add(-reach), Until: t.Add(reach)}
}

// shows reports whether the view has all bookings that matter to t.
func (v View) shows(t time.Time, reach time.Duration) bool {
	return (v.From.IsZero() || !t.Add(-reach).Before(v.From)) &&
		(v.Until.IsZero() || !t.Add(reach).After(v.Until))
}

// Decide says whether t can be booked and, if not, which rules forbid it, and
// the nearest whole seconds that are free: Next from t on, Previous before t
// but after now. It is incomplete if the view ends before they are found; ask
// again with a wider view.
func (p Policy) Decide(v View, t, now time.Time) (d Decision, complete bool) {
	d.Violations = p.Violations(v.Bookings, t)
	if d.Allowed() {
		d.Next, d.Previous = t, t
		return d, v.shows(t, p.Reach())
	}
	complete = v.shows(t, p.Reach())
	if next, ok := p.Next(v.Bookings, t, Second); ok {
		d.Next, complete = next, complete && v.shows(next, p.Reach())
	}
	if previous, ok := p.Previous(v.Bookings, t, Second); ok && previous.After(now) {
		d.Previous, complete = previous, complete && v.shows(previous, p.Reach())
	}
	return d, complete
}
