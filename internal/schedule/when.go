package schedule

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// When is the time that a caller wants a push to be sent at: an instant, or a local time. The zero When is now.
type When struct {
	SendAt    time.Time
	LocalTime time.Time // what the clocks of the zone show, as UTC shows it; zero: there is only SendAt
	TimeZone  string    // of LocalTime; empty: the recipient's, and else the default zone of the policy

	Behind time.Duration // whole seconds: the push is for so long after that
}

// when is the time that the request names.
func (r Request) when() When { return When{r.SendAt, r.LocalTime, r.TimeZone, r.Behind} }

// field is the one that a caller gave the time in.
func (w When) field() string {
	if w.LocalTime.IsZero() {
		return "send_at"
	}
	return "local_time"
}

// written is the time as its caller may have written it.
func (w When) written() string {
	switch {
	case !w.LocalTime.IsZero():
		return w.LocalTime.Format("2006-01-02T15:04:05")
	case w.SendAt.IsZero():
		return ""
	}
	return stamp(w.SendAt)
}

// when returns the send time that a caller wants for a recipient, or says what is wrong with it. A zone that changes later moves
// nothing.
func (s *Service) when(ctx context.Context, w When, who quota.Recipient, known *standings, now time.Time, bad *invalid.FieldErrors) (time.Time, error) {
	if w.LocalTime.IsZero() {
		return s.sendTime(w.SendAt, w, now, bad), nil
	}
	in, err := s.zone(ctx, w.TimeZone, who, known)
	if unknown, ok := err.(*zone.UnknownError); ok {
		bad.Add("time_zone", w.TimeZone, "%s", unknown)
		return now, nil
	}
	if err != nil {
		return now, err
	}
	return s.sendTime(zone.Instant(w.LocalTime, in), w, now, bad), nil
}

// zone returns the zone with a name; without one, that of the recipient, or the default of the terms. An error is a
// [*zone.UnknownError], or that of the store.
func (s *Service) zone(ctx context.Context, name string, who quota.Recipient, known *standings) (*time.Location, error) {
	if name != "" {
		return zone.Load(name)
	}
	of, err := s.standing(ctx, who, known)
	if err != nil {
		return nil, err
	}
	return zoneOf(of), nil
}

// zoneOf is the zone of a recipient.
func zoneOf(of booking.Standing) *time.Location {
	if of.Person.Zone != nil {
		return of.Person.Zone
	}
	if terms, ok := of.Terms.(interface{ DefaultZone() *time.Location }); ok {
		return terms.DefaultZone()
	}
	return time.UTC
}

// sendTime rounds a send time up to a second. A push without one is due in the running second, at once.
func (s *Service) sendTime(t time.Time, w When, now time.Time, bad *invalid.FieldErrors) time.Time {
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
	case up.After(now.Add(s.cfg.MaxHorizon)):
		bad.Add(w.field(), w.written(), "%smust not be more than %s ahead; it is now %s", said, s.cfg.MaxHorizon, invalid.Now(now))
	}
	return up
}
