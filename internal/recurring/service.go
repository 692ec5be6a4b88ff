package recurring

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/zone"
)

// Service does what callers ask for. It is safe for concurrent use. Another tenant's schedule is [push.ErrNotFound]
// everywhere.
type Service struct {
	reads
	store *store.Store
	zones zones
	now   func() time.Time
	cfg   Config
}

// Config bounds what tenants may have.
type Config struct {
	MaxPerTenant int
	Kept         time.Duration // how long what became of an occurrence is on record; 0: for ever
}

// reads is the part of the store that the API uses as it is.
type reads interface {
	Schedule(ctx context.Context, tenant, id uuid.UUID) (push.Schedule, error)
	Schedules(ctx context.Context, tenant, after uuid.UUID, limit int) (push.SchedulePage, error)
	Runs(ctx context.Context, tenant, schedule uuid.UUID, before time.Time, limit int) (push.RunPage, error)
	DeleteSchedule(ctx context.Context, tenant, id uuid.UUID) error
}

// zones knows the zone of what names none.
type zones interface {
	DefaultZone(ctx context.Context, tenant uuid.UUID) (string, error)
}

// New returns the schedules in a store. now is the clock, usually time.Now.
func New(st *store.Store, z zones, now func() time.Time, cfg Config) *Service {
	return &Service{reads: st, store: st, zones: z, now: now, cfg: cfg}
}

// Change is what a caller wants a schedule to be. Of a new one, what is nil has its default; of another one, it stays.
type Change struct {
	Name, Cron, TimeZone *string
	Pattern              *push.Pattern // valid; it takes the place of a campaign
	Campaign             *uuid.UUID    // it takes the place of a pattern
	CatchUp              *push.CatchUp
	Paused               *bool
	Until                *time.Time // zero: for ever
}

// on changes all but the times at which a schedule happens.
func (c Change) on(p push.Schedule) push.Schedule {
	set(&p.Name, c.Name)
	set(&p.Cron, c.Cron)
	set(&p.TimeZone, c.TimeZone)
	if c.Pattern != nil {
		p.Pattern, p.Campaign = *c.Pattern, uuid.Nil
	}
	if c.Campaign != nil {
		p.Pattern, p.Campaign = push.Pattern{}, *c.Campaign
	}
	set(&p.CatchUp, c.CatchUp)
	set(&p.Paused, c.Paused)
	set(&p.Until, c.Until)
	return p
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Key is the Idempotency-Key of a request; the zero value is none.
type Key struct {
	Text string
	Hash []byte // of the request
}

// Create makes a schedule, or finds the one that an earlier request with the same key has made. Its errors are
// [invalid.FieldErrors], [push.ErrTooManySchedules] and [push.ErrKeyReused].
func (s *Service) Create(ctx context.Context, tenant uuid.UUID, c Change, key Key) (p push.Schedule, found bool, err error) {
	p = c.on(push.Schedule{ID: uuid.Must(uuid.NewV7()), Tenant: tenant, CatchUp: push.CatchUpSkip})
	if key.Text != "" {
		p.ID = uuid.NewHash(sha256.New(), tenant, []byte("schedule "+key.Text), 8)
	}
	if c.TimeZone == nil {
		if p.TimeZone, err = s.zones.DefaultZone(ctx, tenant); err != nil {
			return p, false, fmt.Errorf("create schedule: %w", err)
		}
	}
	bad, err := s.check(ctx, c, p)
	if err != nil {
		return p, false, fmt.Errorf("create schedule: %w", err)
	}
	invalid := bad.Err()
	if invalid != nil && key.Text == "" {
		return p, false, invalid
	}
	n := store.NewSchedule{Schedule: p, RequestHash: key.Hash, Most: s.cfg.MaxPerTenant, Invalid: invalid}
	p, found, err = s.store.CreateSchedule(ctx, n, func(p push.Schedule, now time.Time) push.Schedule {
		p = restart(p, now)
		if times, err := timetable(&p); err == nil { // it was checked
			p.NextAt = next(&p, times)
		}
		return p
	})
	return p, found, c.without(err)
}

// without says of a campaign that was deleted since it was checked what the check would have said.
func (c Change) without(err error) error {
	if !errors.Is(err, push.ErrNoPattern) {
		return err
	}
	var bad invalid.FieldErrors
	bad.Add("campaign", c.Campaign.String(), "%v", push.ErrNoPattern)
	return bad
}

// Check says all that is wrong with the change of a schedule; one with nothing but a tenant is a new one. Callers that found other
// errors report them together with these.
func (s *Service) Check(ctx context.Context, c Change, of push.Schedule) (invalid.FieldErrors, error) {
	of = c.on(of)
	if of.TimeZone == "" && c.TimeZone == nil {
		of.TimeZone = "UTC"
	}
	return s.check(ctx, c, of)
}

// check looks at what a change brings to a schedule.
func (s *Service) check(ctx context.Context, c Change, p push.Schedule) (bad invalid.FieldErrors, err error) {
	now := s.now().UTC()
	in, unknown := zone.Load(p.TimeZone)
	if unknown != nil {
		in = time.UTC
		if c.TimeZone != nil || c.Cron != nil { // of one that was known, and is not any more, another is to be given
			bad.Add("time_zone", p.TimeZone, "%v", unknown)
		}
	}
	if c.Cron != nil || c.TimeZone != nil && len(bad) == 0 {
		if _, err := recurrence.Parse(p.Cron, in, now); err != nil && p.Cron != "" {
			bad.Add("cron", p.Cron, "%v", err)
		}
	}
	if c.Until != nil && !c.Until.IsZero() && !c.Until.After(now) {
		bad.Add("until", c.Until.UTC().Format(time.RFC3339Nano), "must be in the future; it is now %s", invalid.Now(now))
	}
	if c.Campaign == nil {
		return bad, nil
	}
	pattern, err := s.store.Campaign(ctx, p.Tenant, *c.Campaign)
	switch {
	case errors.Is(err, push.ErrNotFound):
		bad.Add("campaign", c.Campaign.String(), "%v", push.ErrNoPattern)
	case err != nil:
		return bad, err
	case !pattern.Status.Pattern():
		bad.Add("campaign", c.Campaign.String(), "must be a draft, or a campaign that has finished; it is %s", pattern.Status)
	}
	return bad, nil
}

// Change changes a schedule. What was due before keeps to what the schedule was then. Its errors are [invalid.FieldErrors],
// [push.ErrNotFound] and [*push.StaleError].
func (s *Service) Change(ctx context.Context, tenant, id uuid.UUID, c Change, unchanged push.Unchanged) (push.Schedule, error) {
	old, err := s.store.Schedule(ctx, tenant, id)
	if err != nil {
		return old, err
	}
	bad, err := s.Check(ctx, c, old)
	if err == nil {
		err = bad.Err()
	}
	if err != nil {
		return old, err
	}
	p, err := s.store.ChangeSchedule(ctx, tenant, id, unchanged, func(p push.Schedule, now time.Time) (push.Schedule, []push.Run, bool) {
		var runs []push.Run
		if c.moves() {
			settled, past, err := settle(p, now, s.cfg.Kept)
			if err == nil { // else it cannot be read; the change may mend it
				p, runs = settled, past
			}
			if again := err == nil && !p.NextAt.IsZero() && !p.NextAt.After(now); again {
				return p, runs, true
			}
		}
		return c.apply(p, now), runs, false
	})
	return p, c.without(err)
}

// moves reports whether the change can concern when a schedule happens.
func (c Change) moves() bool {
	return c.Cron != nil || c.TimeZone != nil || c.Paused != nil || c.Until != nil
}

// apply changes a schedule of which nothing is due. One that can still not be read is due at once: workers look at it again and
// again.
func (c Change) apply(p push.Schedule, now time.Time) push.Schedule {
	n := c.on(p)
	ended := p.NextAt.IsZero() && c.Until != nil
	if ended || n.Cron != p.Cron || n.TimeZone != p.TimeZone {
		n.Done = now
	}
	if n.Cron != p.Cron {
		n = restart(n, now)
	}
	if !c.moves() {
		return n
	}
	if times, err := timetable(&n); err == nil {
		n.NextAt = next(&n, times)
	} else {
		n.NextAt = now
	}
	return n
}

// Next returns the next n times at which a schedule will happen, if it is not paused then, or fewer if it ends; none of one whose
// zone is not known any more.
func (s *Service) Next(ctx context.Context, tenant, id uuid.UUID, n int) ([]time.Time, error) {
	p, err := s.store.Schedule(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	times, err := timetable(&p)
	if err != nil {
		return nil, nil
	}
	after := s.now()
	if p.Done.After(after) {
		after = p.Done
	}
	all := times.Take(after, n)
	for i, at := range all {
		if !p.Until.IsZero() && !at.Before(p.Until) {
			return all[:i], nil
		}
	}
	return all, nil
}
