package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
)

// Refusal is a push that finds no place in its recipient's quota: why, and
// when else there is one.
type Refusal struct {
	Recipient string
	SendAt    time.Time
	quota.Decision
}

// Error says it in one sentence.
func (r *Refusal) Error() string {
	reasons := make([]string, len(r.Violations))
	for i, v := range r.Violations {
		reasons[i] = reason(v, r.SendAt)
	}
	return r.Recipient + " " + strings.Join(reasons, ", and ")
}

func reason(v quota.Violation, at time.Time) string {
	if v.Rule.Limit == 0 {
		return fmt.Sprintf("may not be sent anything (rule %s has limit 0)", v.Rule.Name)
	}
	sends := "sends"
	if v.Rule.Limit == 1 {
		sends = "send"
	}
	return fmt.Sprintf("already has %d %s within %s of %s (rule %s)", v.Rule.Limit, sends, v.Rule.Window, at.Format(time.RFC3339), v.Rule.Name)
}

// refuse explains a refusal from what the ledger or the judge saw, and looks
// further if the nearest free times lie beyond that. A push that is to be moved
// is no obstacle to itself; uuid.Nil: none is.
func (s *Service) refuse(ctx context.Context, r quota.Recipient, at time.Time, view quota.View, moving uuid.UUID) (*Refusal, error) {
	d, err := s.decide(ctx, r, at, view, moving)
	if err != nil {
		return nil, err
	}
	return &Refusal{Recipient: r.ID, SendAt: at, Decision: d}, nil
}

// decide widens the view until the decision is complete.
func (s *Service) decide(ctx context.Context, r quota.Recipient, at time.Time, view quota.View, moving uuid.UUID) (quota.Decision, error) {
	for times := 8; ; times *= 8 {
		d, complete := s.cfg.Policy.Decide(view, at, s.now())
		if complete {
			return d, nil
		}
		var err error
		if view, err = s.widen(ctx, r, view, s.cfg.Policy.Around(at, times), moving); err != nil {
			return d, err
		}
	}
}

// widen adds what lies beyond the view. It keeps what the view shows: that
// decided, though Postgres may say otherwise by now, or never have stored the
// refused batch's other members.
func (s *Service) widen(ctx context.Context, r quota.Recipient, view, wider quota.View, moving uuid.UUID) (quota.View, error) {
	found, err := s.look(ctx, r, wider)
	if err != nil {
		return view, err
	}
	var before, behind []quota.Booking
	for _, b := range found.Bookings {
		switch {
		case b.ID == moving:
		case !b.At.After(view.From):
			before = append(before, b)
		case !b.At.Before(view.Until):
			behind = append(behind, b)
		}
	}
	wider.Bookings = slices.Concat(before, view.Bookings, behind)
	if view.From.Before(wider.From) {
		wider.From = view.From
	}
	if view.Until.After(wider.Until) {
		wider.Until = view.Until
	}
	return wider, nil
}

// look fills a view from Postgres.
func (s *Service) look(ctx context.Context, r quota.Recipient, view quota.View) (quota.View, error) {
	held, err := s.store.Bookings(ctx, r, view.From, view.Until)
	view.Bookings = make([]quota.Booking, len(held))
	for i, h := range held {
		view.Bookings[i] = h.Booking
	}
	return view, err
}
