package schedule

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// submitHistory remembers the recipients of this process' recent submits. A recipient's first push is hardly ever
// refused. So the second push loads the recipient into the cache, and the third is the first to ask the cache. After a
// refusal another one is so likely that the next push asks Postgres at once.
type submitHistory struct {
	now func() time.Time

	mu           sync.Mutex
	newer, older map[int64]history // by recipient key
	since        time.Time         // when newer was begun
	most         int               // recipients in each of the two
}

// history counts the recent submits of a recipient, and marks a refusal of the last one.
type history int8

const (
	never history = iota
	once
	often
	refused // often, and the last push was refused
)

// The two halves take about 20 MB at most, for all tenants together: a tenant with very many recipients evicts the
// recipients of others. An evicted recipient costs at most two refusals that Postgres decides without the cache.
const (
	historyRecipients = 250_000
	historyTime       = 10 * time.Minute // as long as the cache keeps a recipient's bookings
)

func newSubmitHistory(now func() time.Time) *submitHistory {
	return &submitHistory{now: now, newer: map[int64]history{}, most: historyRecipients}
}

// note adds a submit to a recipient's history, and returns the history before.
func (r *submitHistory) note(key int64) history {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); len(r.newer) >= r.most || now.Sub(r.since) >= historyTime {
		r.newer, r.older, r.since = map[int64]history{}, r.newer, now
	}
	before := r.history(key)
	r.newer[key] = max(before, min(before+1, often))
	return before
}

// record replaces a recipient's history after the result of a submit.
func (r *submitHistory) record(key int64, h history) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.older, key)
	r.newer[key] = h
}

// known reports whether a recipient has a history.
func (r *submitHistory) known(key int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history(key) != never
}

func (r *submitHistory) history(key int64) history { return max(r.newer[key], r.older[key]) }

// bursts counts each tenant's pushes by send second, as far as this process booked them recently. Pushes beyond
// promptShare are a burst: they are sent after other tenants' pushes of the same level that are due by then.
type bursts struct {
	mu           sync.Mutex
	newer, older map[tenantSecond]int
}

type tenantSecond struct {
	tenant uuid.UUID
	second int64 // Unix
}

const (
	// The first promptShare pushes of a tenant for a second are no burst.
	promptShare = 200
	// rememberedSeconds is the size of each half; the two take about 20 MB at most. A tenant that spreads its pushes
	// over more seconds has no burst.
	rememberedSeconds = 100_000
)

func newBursts() *bursts { return &bursts{newer: map[tenantSecond]int{}} }

// note counts a push, and reports whether the tenant has many for its second.
func (s *bursts) note(tenant uuid.UUID, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.newer) >= rememberedSeconds {
		s.newer, s.older = map[tenantSecond]int{}, s.newer
	}
	key := tenantSecond{tenant, at.Unix()}
	n, known := s.newer[key]
	if !known {
		n = s.older[key]
	}
	s.newer[key] = n + 1
	return n >= promptShare
}
