package schedule

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// When is the requested send time of a push: an instant, or a local time. The zero When is now.
type When struct {
	SendAt    time.Time
	LocalTime time.Time // the local clock time, stored as if in UTC; zero: use SendAt
	TimeZone  string    // zone of LocalTime; empty: the recipient's zone, or else the policy's default

	Behind time.Duration // whole seconds to add
}

// when returns the requested send time.
func (r Request) when() When { return When{r.SendAt, r.LocalTime, r.TimeZone, r.Behind} }

// field returns the name of the field that holds the time.
func (w When) field() string {
	if w.LocalTime.IsZero() {
		return "send_at"
	}
	return "local_time"
}

// written returns the time as the caller may have written it.
func (w When) written() string {
	switch {
	case !w.LocalTime.IsZero():
		return w.LocalTime.Format("2006-01-02T15:04:05")
	case w.SendAt.IsZero():
		return ""
	}
	return stamp(w.SendAt)
}

// when returns the send time for a recipient, or adds its faults to bad. Later changes of the recipient's zone do not
// move the push.
func (pl *Planner) when(ctx context.Context, w When, who quota.Recipient, known *standings, now time.Time, bad *invalid.FieldErrors) (time.Time, error) {
	if w.LocalTime.IsZero() {
		return pl.sendTime(w.SendAt, w, now, bad), nil
	}
	in, err := pl.zone(ctx, w.TimeZone, who, known)
	if unknown, ok := err.(*zone.UnknownError); ok {
		bad.Add("time_zone", w.TimeZone, "%s", unknown)
		return now, nil
	}
	if err != nil {
		return now, err
	}
	return pl.sendTime(zone.Instant(w.LocalTime, in), w, now, bad), nil
}

// zone loads the zone with a name. Without one, it returns the recipient's zone, or the default zone of the terms. Its
// errors are [*zone.UnknownError] and the errors of the store.
func (pl *Planner) zone(ctx context.Context, name string, who quota.Recipient, known *standings) (*time.Location, error) {
	if name != "" {
		return zone.Load(name)
	}
	of, err := pl.standing(ctx, who, known)
	if err != nil {
		return nil, err
	}
	return zoneOf(of), nil
}

// zoneOf returns the zone of a recipient.
func zoneOf(of booking.Standing) *time.Location {
	if of.Person.Zone != nil {
		return of.Person.Zone
	}
	if terms, ok := of.Terms.(interface{ DefaultZone() *time.Location }); ok {
		return terms.DefaultZone()
	}
	return time.UTC
}

// sendTime rounds a send time up to a second. Without a send time, a push is due in the current second, at once.
func (pl *Planner) sendTime(t time.Time, w When, now time.Time, bad *invalid.FieldErrors) time.Time {
	if t.IsZero() {
		t = now.Truncate(quota.Second)
	}
	up := t.UTC().Truncate(quota.Second)
	if up.Before(t) {
		up = up.Add(quota.Second)
	}
	up = up.Add(w.Behind)
	said := ""
	if !w.LocalTime.IsZero() || w.Behind > 0 {
		said = "is " + stamp(up) + ", and "
	}
	switch {
	case up.Before(now.Add(-time.Minute)):
		bad.Add(w.field(), w.written(), "%smust not be more than a minute in the past; it is now %s", said, invalid.Now(now))
	case up.After(now.Add(pl.cfg.MaxHorizon)):
		bad.Add(w.field(), w.written(), "%smust not be more than %s ahead; it is now %s", said, pl.cfg.MaxHorizon, invalid.Now(now))
	}
	return up
}
