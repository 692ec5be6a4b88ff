package schedule

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// shadowPeriod is how often counts of shadow rules are stored.
const shadowPeriod = 5 * time.Second

// How many counts are gathered between two times, of all tenants and of each. Categories are texts of the tenants' choice: of
// those beyond, the pushes are not counted.
const (
	mostShadows   = 50_000
	tenantShadows = 1_000
)

// shadowPortion is how many counts are stored in a statement.
const shadowPortion = 5_000

// Shadows gathers what shadow rules would have refused, and adds it to the counts in Postgres every few seconds: no submit
// waits for that. What a process that is killed had gathered is lost. A nil one counts nothing.
type Shadows struct {
	store shadowStore
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	counts map[uuid.UUID]map[shadow]int
	size   int
}

type shadow struct {
	minute         int64 // Unix
	rule, category string
}

// shadowStore adds counts to those of before.
type shadowStore interface {
	AddShadows(ctx context.Context, counts []booking.ShadowCount) error
}

// NewShadows returns counts that nothing was added to.
func NewShadows(st shadowStore, log *slog.Logger, now func() time.Time) *Shadows {
	return &Shadows{store: st, log: log, now: now, counts: map[uuid.UUID]map[shadow]int{}}
}

// Run stores the counts every few seconds, until ctx ends.
func (s *Shadows) Run(ctx context.Context) error {
	return loop.Loop{Name: "store counts of shadow rules", Interval: shadowPeriod, Log: s.log, Pass: func(ctx context.Context) (full bool, err error) {
		return false, s.Flush(ctx)
	}}.Run(ctx)
}

// count counts a push that was booked, for each of the rules.
func (s *Shadows) count(p *push.Push, rules []string) {
	if s == nil {
		return
	}
	minute := s.now().Unix() / 60 * 60
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range rules {
		s.add(p.Tenant, shadow{minute, rule, p.Category}, 1)
	}
}

func (s *Shadows) add(tenant uuid.UUID, of shadow, n int) {
	counts := s.counts[tenant]
	if _, known := counts[of]; !known {
		if s.size >= mostShadows || len(counts) >= tenantShadows {
			return
		}
		s.size++
	}
	if counts == nil {
		counts = map[shadow]int{}
		s.counts[tenant] = counts
	}
	counts[of] += n
}

// Flush stores what was gathered. What could not be stored is kept, though it may have been.
func (s *Shadows) Flush(ctx context.Context) (err error) {
	s.mu.Lock()
	counts := make([]booking.ShadowCount, 0, s.size)
	for tenant, of := range s.counts {
		for one, n := range of {
			counts = append(counts, booking.ShadowCount{Tenant: tenant, Minute: time.Unix(one.minute, 0).UTC(), Rule: one.rule, Category: one.category, Pushes: n})
		}
	}
	s.counts, s.size = map[uuid.UUID]map[shadow]int{}, 0
	s.mu.Unlock()
	for portion := range slices.Chunk(counts, shadowPortion) {
		if err == nil {
			err = s.store.AddShadows(ctx, portion)
		}
		if err != nil {
			s.keep(portion)
		}
	}
	return err
}

func (s *Shadows) keep(counts []booking.ShadowCount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range counts {
		s.add(c.Tenant, shadow{c.Minute.Unix(), c.Rule, c.Category}, c.Pushes)
	}
}
