package schedule

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/loop"
)

// Counts are stored every flushPeriod, up to flushPortion in a statement.
const (
	flushPeriod  = 5 * time.Second
	flushPortion = 5_000
)

// countBuffer collects counts of pushes and adds them to the counts in Postgres every few seconds, so that no submit
// waits for it. Counts not stored yet are lost if the process is killed. Two counts C are added up if they are equal
// except for the number.
type countBuffer[C comparable] struct {
	name            string // name of the loop
	log             *slog.Logger
	most, perTenant int // distinct counts between two flushes, overall and per tenant; more are dropped
	of              func(*C) (tenant uuid.UUID, pushes *int)
	store           func(ctx context.Context, counts []C) error

	mu     sync.Mutex
	counts map[uuid.UUID]map[C]int // by tenant; the numbers in the keys are 0
	size   int
}

// Run stores the counts every few seconds, until ctx ends.
func (g *countBuffer[C]) Run(ctx context.Context) error {
	return loop.Loop{Name: g.name, Interval: flushPeriod, Log: g.log, Pass: func(ctx context.Context) (full bool, err error) {
		return false, g.Flush(ctx)
	}}.Run(ctx)
}

// add adds to the counts.
func (g *countBuffer[C]) add(counts ...C) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range counts {
		tenant, pushes := g.of(&c)
		n := *pushes
		*pushes = 0
		all := g.counts[tenant]
		if _, known := all[c]; !known {
			if g.size >= g.most || len(all) >= g.perTenant {
				continue
			}
			g.size++
		}
		if all == nil {
			all = map[C]int{}
			if g.counts == nil {
				g.counts = map[uuid.UUID]map[C]int{}
			}
			g.counts[tenant] = all
		}
		all[c] += n
	}
}

// Flush stores the collected counts. After an error it keeps the counts, even though they may have been stored.
func (g *countBuffer[C]) Flush(ctx context.Context) (err error) {
	for portion := range slices.Chunk(g.take(), flushPortion) {
		if err == nil {
			err = g.store(ctx, portion)
		}
		if err != nil {
			g.add(portion...)
		}
	}
	return err
}

// take returns the counts and resets them.
func (g *countBuffer[C]) take() []C {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := make([]C, 0, g.size)
	for _, all := range g.counts {
		for c, n := range all {
			_, pushes := g.of(&c)
			*pushes = n
			taken = append(taken, c)
		}
	}
	g.counts, g.size = nil, 0
	return taken
}
