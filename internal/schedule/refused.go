package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// keptRefusal is a refusal of a single push, as it is kept for its recipient.
type keptRefusal struct {
	Event
	Name      string     `json:",omitempty"` // of the API's problem
	Rules     []string   `json:",omitempty"`
	Conflicts []conflict `json:",omitempty"`
}

// conflict is a booking that was in the way, as the API writes it.
type conflict struct {
	ID     uuid.UUID `json:"id"`
	SendAt time.Time `json:"send_at"`
}

// keptConflicts is how many conflicts are kept of a refusal.
const keptConflicts = 10

// noteRefusal counts a push that was planned for a time and refused for its recipient's sake, and keeps it for the recipient. It does
// not wait.
func (s *Service) noteRefusal(tenant uuid.UUID, r Request, sendAt time.Time, o Options, err error) {
	if err == nil || o.ValidateOnly {
		return
	}
	of := keptRefusal{Event: Event{At: s.now().UTC(), Kind: Refused, Channel: cmp.Or(r.Channel, s.cfg.Channels[0]), Category: r.Category, SendAt: sendAt}}
	if !of.because(err) {
		return
	}
	s.cfg.Refusals.count(tenant, &of)
	if text, err := json.Marshal(of); err == nil {
		s.cache.Refused(quota.Recipient{Tenant: tenant, ID: r.Recipient}, text)
	}
}

// because notes why a push was refused. It reports whether it was, and not for its form.
func (k *keptRefusal) because(err error) bool {
	var (
		refusal  *Refusal
		unwanted *OptedOut
		capped   *booking.Capped
	)
	switch {
	case errors.As(err, &refusal):
		k.Name = "quiet-hours"
		for _, v := range refusal.Violations {
			if k.Rules = append(k.Rules, v.Rule.Name); !v.Rule.Quiet {
				k.Name = "quota-exceeded"
			}
			for _, b := range v.Conflicts {
				if len(k.Conflicts) < keptConflicts {
					k.Conflicts = append(k.Conflicts, conflict{b.ID, b.At.UTC()})
				}
			}
		}
		k.Reason = refusedBy(k.Rules)
	case errors.As(err, &unwanted):
		k.Name, k.Reason = booking.OptedOutReason, booking.OptedOutReason
	case errors.As(err, &capped):
		k.Name, k.Rules, k.Reason = "tenant-cap-exceeded", []string{capped.Cap}, "the tenant's cap: "+capped.Cap
	default:
		return false
	}
	return true
}

// kept returns the refusals of single pushes of a recipient that are kept, the oldest first.
func (s *Service) kept(ctx context.Context, r quota.Recipient) (all []keptRefusal) {
	for _, text := range s.cache.Refusals(ctx, r) {
		var one keptRefusal
		if json.Unmarshal([]byte(text), &one) == nil && s.now().Sub(one.At) < quota.RefusalTime {
			all = append(all, one)
		}
	}
	slices.Reverse(all)
	return all
}

// refusedPeriod is how often counts of refused pushes are stored.
const refusedPeriod = 5 * time.Second

// How many counts of refused pushes are gathered between two times, of all tenants and of each, and how many are stored in a statement.
// Of kinds beyond, the pushes are not counted.
const (
	mostRefused    = 50_000
	tenantRefused  = 5_000
	refusedPortion = 5_000
)

// Refusals counts pushes that were refused, and adds them to the stat deltas in Postgres every few seconds: no submit waits for that.
// What a process that is killed had gathered is lost. A nil one counts nothing.
type Refusals struct {
	store refusedStore
	log   *slog.Logger

	mu     sync.Mutex
	counts map[uuid.UUID]map[push.RefusedCount]int // by tenant; the counts in the keys are 0
	size   int
}

// refusedStore adds counts to those of before.
type refusedStore interface {
	AddRefused(ctx context.Context, counts []push.RefusedCount) error
}

// NewRefusals returns counts that nothing was added to.
func NewRefusals(st refusedStore, log *slog.Logger) *Refusals {
	return &Refusals{store: st, log: log, counts: map[uuid.UUID]map[push.RefusedCount]int{}}
}

// Run stores the counts every few seconds, until ctx ends.
func (r *Refusals) Run(ctx context.Context) error {
	return loop.Loop{Name: "store counts of refused pushes", Interval: refusedPeriod, Log: r.log, Pass: func(ctx context.Context) (full bool, err error) {
		return false, r.Flush(ctx)
	}}.Run(ctx)
}

// count counts a push, and for each of the rules that have refused it.
func (r *Refusals) count(tenant uuid.UUID, k *keptRefusal) {
	if r == nil {
		return
	}
	of := push.RefusedCount{Tenant: tenant, Hour: k.At.Truncate(time.Hour), Channel: k.Channel, Category: k.Category}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(of, 1)
	for i, rule := range k.Rules {
		if !slices.Contains(k.Rules[:i], rule) {
			of.Rule = rule
			r.add(of, 1)
		}
	}
}

func (r *Refusals) add(of push.RefusedCount, n int) {
	counts := r.counts[of.Tenant]
	if _, known := counts[of]; !known {
		if r.size >= mostRefused || len(counts) >= tenantRefused {
			return
		}
		r.size++
	}
	if counts == nil {
		counts = map[push.RefusedCount]int{}
		r.counts[of.Tenant] = counts
	}
	counts[of] += n
}

// Flush stores what was gathered. What could not be stored is kept, though it may have been.
func (r *Refusals) Flush(ctx context.Context) (err error) {
	r.mu.Lock()
	counts := make([]push.RefusedCount, 0, r.size)
	for _, of := range r.counts {
		for one, n := range of {
			one.Pushes = n
			counts = append(counts, one)
		}
	}
	r.counts, r.size = map[uuid.UUID]map[push.RefusedCount]int{}, 0
	r.mu.Unlock()
	for portion := range slices.Chunk(counts, refusedPortion) {
		if err == nil {
			err = r.store.AddRefused(ctx, portion)
		}
		if err != nil {
			r.keep(portion)
		}
	}
	return err
}

func (r *Refusals) keep(counts []push.RefusedCount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range counts {
		n := one.Pushes
		one.Pushes = 0
		r.add(one, n)
	}
}
