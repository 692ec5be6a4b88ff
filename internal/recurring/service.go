package recurring

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/store/schedules"
	"github.com/sendquota/sendquota/internal/zone"
)

// Service serves callers' requests. It is safe for concurrent use. Every method returns [push.ErrNotFound] for another
// tenant's schedule.
type Service struct {
	reads
	changes   changes
	campaigns campaigns
	zones     zones
	now       func() time.Time
	cfg       Config
}

// Config limits a tenant's schedules.
type Config struct {
	MaxPerTenant int
	Kept         time.Duration // how long the outcomes of occurrences are kept; 0: forever
}

// reads are the methods of the store that the API uses unchanged.
type reads interface {
	Schedule(ctx context.Context, tenant, id uuid.UUID) (recurrence.Schedule, error)
	Schedules(ctx context.Context, tenant, after uuid.UUID, limit int) (recurrence.Page, error)
	Runs(ctx context.Context, tenant, schedule uuid.UUID, before time.Time, limit int) (recurrence.RunPage, error)
	DeleteSchedule(ctx context.Context, tenant, id uuid.UUID) error
}

// changes creates and changes schedules.
type changes interface {
	Clock(ctx context.Context, tenant uuid.UUID) (time.Time, error)
	CreateSchedule(ctx context.Context, n schedules.NewSchedule) (p recurrence.Schedule, found bool, err error)
	CurrentSchedule(ctx context.Context, tenant, id uuid.UUID) (p recurrence.Schedule, now time.Time, err error)
	ChangeSchedule(ctx context.Context, n schedules.Change) (recurrence.Schedule, error)
}

// campaigns finds the campaign that a schedule copies.
type campaigns interface {
	Campaign(ctx context.Context, tenant, id uuid.UUID) (broadcast.Campaign, error)
}

// Store is the part of the store that a [Service] uses.
type Store interface {
	reads
	changes
	campaigns
}

// zones returns a tenant's default zone.
type zones interface {
	DefaultZone(ctx context.Context, tenant uuid.UUID) (string, error)
}

// New returns the schedules in a store. now is the clock, usually time.Now.
func New(st Store, z zones, now func() time.Time, cfg Config) *Service {
	return &Service{reads: st, changes: st, campaigns: st, zones: z, now: now, cfg: cfg}
}

// Change is a caller's change of a schedule. A nil member stays, or has its default in a new schedule.
type Change struct {
	Name, Cron, TimeZone *string
	Pattern              *recurrence.Pattern // valid; replaces a campaign
	Campaign             *uuid.UUID          // replaces a pattern
	CatchUp              *recurrence.CatchUp
	Paused               *bool
	Until                *time.Time // zero: no end
}

// on applies the change to a schedule, except to its times.
func (c Change) on(p recurrence.Schedule) recurrence.Schedule {
	set(&p.Name, c.Name)
	set(&p.Cron, c.Cron)
	set(&p.TimeZone, c.TimeZone)
	if c.Pattern != nil {
		p.Pattern, p.Campaign = *c.Pattern, uuid.Nil
	}
	if c.Campaign != nil {
		p.Pattern, p.Campaign = recurrence.Pattern{}, *c.Campaign
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

// Create creates a schedule, or returns the one that an earlier request with the same key has created. Its errors are
// [invalid.FieldErrors], [recurrence.ErrTooMany] and [push.ErrKeyReused].
func (s *Service) Create(ctx context.Context, tenant uuid.UUID, c Change, key Key) (p recurrence.Schedule, found bool, err error) {
	p = c.on(recurrence.Schedule{ID: uuid.Must(uuid.NewV7()), Tenant: tenant, CatchUp: recurrence.Skip})
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
	now, err := s.changes.Clock(ctx, tenant)
	if err != nil {
		return p, false, err
	}
	p = restart(p, now)
	if times, err := timetable(&p); err == nil { // it was checked
		p.NextAt = next(&p, times)
	}
	n := schedules.NewSchedule{Schedule: p, RequestHash: key.Hash, Most: s.cfg.MaxPerTenant, Invalid: invalid}
	p, found, err = s.changes.CreateSchedule(ctx, n)
	return p, found, c.without(err)
}

// without turns the error of a campaign that was deleted after the check into the error of the check.
func (c Change) without(err error) error {
	if !errors.Is(err, recurrence.ErrNoPattern) {
		return err
	}
	var bad invalid.FieldErrors
	bad.Add("campaign", c.Campaign.String(), "%v", recurrence.ErrNoPattern)
	return bad
}

// Check returns all faults of a change of a schedule; a schedule with nothing but a tenant is a new one. Callers merge
// these with their own errors.
func (s *Service) Check(ctx context.Context, c Change, of recurrence.Schedule) (invalid.FieldErrors, error) {
	of = c.on(of)
	if of.TimeZone == "" && c.TimeZone == nil {
		of.TimeZone = "UTC"
	}
	return s.check(ctx, c, of)
}

// check checks the changed members of a schedule.
func (s *Service) check(ctx context.Context, c Change, p recurrence.Schedule) (bad invalid.FieldErrors, err error) {
	now := s.now().UTC()
	in, unknown := zone.Load(p.TimeZone)
	if unknown != nil {
		in = time.UTC
		if c.TimeZone != nil || c.Cron != nil { // a zone that is no longer known must be replaced
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
	pattern, err := s.campaigns.Campaign(ctx, p.Tenant, *c.Campaign)
	switch {
	case errors.Is(err, push.ErrNotFound):
		bad.Add("campaign", c.Campaign.String(), "%v", recurrence.ErrNoPattern)
	case err != nil:
		return bad, err
	case !pattern.Status.Pattern():
		bad.Add("campaign", c.Campaign.String(), "must be a draft, or a campaign that has finished; it is %s", pattern.Status)
	}
	return bad, nil
}

// Change changes a schedule. Occurrences that were due before follow the old schedule. Its errors are
// [invalid.FieldErrors], [push.ErrNotFound] and [*push.StaleError].
func (s *Service) Change(ctx context.Context, tenant, id uuid.UUID, c Change, unchanged push.Unchanged) (recurrence.Schedule, error) {
	old, now, err := s.changes.CurrentSchedule(ctx, tenant, id)
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
	for {
		n := c.decide(old, now, s.cfg.Kept)
		n.Unchanged = unchanged
		p, err := s.changes.ChangeSchedule(ctx, n)
		switch {
		case errors.Is(err, schedules.ErrOutdated):
		case err != nil || !n.Partial:
			return p, c.without(err)
		default:
			unchanged = nil // it held before the first occurrences were settled
		}
		if old, now, err = s.changes.CurrentSchedule(ctx, tenant, id); err != nil {
			return old, err
		}
	}
}

// decide settles the occurrences of a schedule that the change can affect, and applies the change behind the last one.
func (c Change) decide(p recurrence.Schedule, now time.Time, kept time.Duration) schedules.Change {
	n := schedules.Change{Before: p, At: now}
	if c.moves() {
		settled, past, err := settle(p, now, kept)
		if err == nil { // else the schedule is unreadable; the change may mend it
			p, n.Runs = settled, past
			n.Partial = !p.NextAt.IsZero() && !p.NextAt.After(now)
		}
	}
	if n.After = p; !n.Partial {
		n.After = c.apply(p, now)
	}
	return n
}

// moves reports whether the change can affect the times of a schedule.
func (c Change) moves() bool {
	return c.Cron != nil || c.TimeZone != nil || c.Paused != nil || c.Until != nil
}

// apply applies the change to a schedule without due occurrences. A schedule that is still unreadable is due at once:
// workers retry it.
func (c Change) apply(p recurrence.Schedule, now time.Time) recurrence.Schedule {
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

// Next returns the next n times of a schedule as if it were not paused, or fewer if it ends, or none if its zone is no
// longer known.
func (s *Service) Next(ctx context.Context, tenant, id uuid.UUID, n int) ([]time.Time, error) {
	p, err := s.Schedule(ctx, tenant, id)
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
