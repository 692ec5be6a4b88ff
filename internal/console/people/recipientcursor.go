package people

import (
	"cmp"
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// cursorAnswer is the answer of the API about the time at the cursor.
type cursorAnswer struct {
	Asked    bool
	Allowed  bool
	Past     bool
	OptedOut bool
	Why      []client.Violation
	Detail   string // of a refusal that is none of the quota
}

// firstFree is the first free moment from the one on that is to be seen, or else the last one before it; zero: there is none.
func (v *recipientView) firstFree() time.Time {
	free := v.Availability.Free
	for _, s := range free {
		if at := v.At.Truncate(time.Second); s.Until.After(at) {
			if s.From.Before(at) {
				return at
			}
			return s.From
		}
	}
	if len(free) > 0 {
		return free[len(free)-1].Until.Add(-time.Second)
	}
	return time.Time{}
}

// readCursor puts the cursor where it is free, if it has no place, and asks what is in the way at it: of a submit, or of
// a move.
func (v *recipientView) readCursor() error {
	p := v.p
	if !v.sees(v.Cursor) {
		v.Cursor = time.Time{}
	}
	if v.Cursor.IsZero() && v.Moving != nil && v.sees(v.Moving.SendAt) {
		v.Cursor = v.Moving.SendAt
	}
	if v.Cursor.IsZero() {
		v.Cursor = v.firstFree()
	}
	switch {
	case v.Cursor.IsZero():
		return nil
	case v.Cursor.Before(v.Availability.AsOf.Add(-time.Minute)):
		v.Legal = cursorAnswer{Asked: true, Past: true}
		return nil
	case v.Moving != nil:
		_, err := p.API.Pushes.ValidateReschedule(p.Context(), v.Moving.ID, client.NewTime{SendAt: v.Cursor})
		return v.Legal.take(p, err)
	}
	found, err := p.API.Quota.Check(p.Context(), client.NewCheck{Recipient: v.ID, Channel: v.Channel, Category: v.Category, SendAt: v.Cursor})
	if err != nil {
		return v.Legal.take(p, err)
	}
	o := found.OptedOut
	v.Legal = cursorAnswer{Asked: true, Allowed: found.Allowed, Why: found.Violations, OptedOut: o.All || len(o.Channels)+len(o.Categories) > 0}
	return nil
}

// take takes the answer to a call that only validates. What is no refusal is returned.
func (a *cursorAnswer) take(p *frame.Page, err error) error {
	*a = cursorAnswer{Asked: true, Allowed: err == nil}
	var (
		full    *client.QuotaExceeded
		quiet   *client.QuietHours
		unwant  *client.OptedOut
		problem *client.Problem
	)
	switch {
	case err == nil:
	case errors.As(err, &full):
		a.Why = full.Violations
	case errors.As(err, &quiet):
		a.Why = quiet.Violations
	case errors.As(err, &unwant):
		a.OptedOut = true
	case errors.As(err, &problem) && problem.Status < 500:
		a.Detail = frame.Words(problem.Detail)
		var invalid *client.Invalid
		if errors.As(err, &invalid) && len(invalid.Errors) > 0 {
			a.Detail = frame.FaultWords(p, invalid.Errors[0])
		}
	default:
		return err
	}
	return nil
}

// readNeighbours finds the free times next to the cursor: the beginning of the next free stretch, and the end of the one before.
// Where the axis shows none, the API is asked what lies behind it.
func (v *recipientView) readNeighbours() error {
	at := cmp.Or(v.Cursor, v.At)
	for _, s := range v.Availability.Free {
		if s.From.After(at) && v.Next.IsZero() {
			v.Next = s.From
		}
		if !at.Before(s.Until) {
			v.Previous = s.Until.Add(-time.Second)
		}
	}
	from, until := v.window()
	if v.Next.IsZero() {
		found, err := v.check(until)
		if err != nil {
			return err
		}
		v.Next = found.NextAvailableAt
	}
	if v.Previous.IsZero() && from.After(v.Availability.AsOf) {
		found, err := v.check(from.Add(-time.Second))
		if err != nil {
			return err
		}
		v.Previous = found.PreviousAvailableAt
	}
	return nil
}

// check asks about a moment. One that cannot be asked about, because it is too far away, has no free times.
func (v *recipientView) check(at time.Time) (client.Check, error) {
	found, err := v.p.API.Quota.Check(v.p.Context(), client.NewCheck{Recipient: v.ID, Channel: v.Channel, Category: v.Category, SendAt: at})
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		return client.Check{}, nil
	}
	return found, err
}

// Exact is the moment of the cursor, for a form whose field shows it by the clocks of a zone. It is empty if there is none.
func (v *recipientView) Exact() string {
	if v.Cursor.IsZero() {
		return ""
	}
	return frame.RFC3339(v.Cursor)
}

// CursorAt is the address of the axis with the cursor at a moment.
func (v *recipientView) CursorAt(t time.Time) string {
	if !v.sees(t) {
		return v.Link("", "cursor", frame.RFC3339(t), "at", frame.RFC3339(t))
	}
	return v.Link("", "cursor", frame.RFC3339(t), "at", frame.RFC3339(v.At))
}
