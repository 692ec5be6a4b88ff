package schedule

import (
	"sync"
	"time"
)

// recent remembers recipients for whom this process was asked to book something not long ago. A recipient's first push
// is hardly ever refused, so the cache is told of a recipient with the second one, and asked from the third one on. After a
// refusal the next one is so likely that Postgres is asked at once.
type recent struct {
	now func() time.Time

	mu           sync.Mutex
	newer, older map[int64]history // by recipient key
	since        time.Time         // when newer was begun
	most         int               // recipients in each of the two
}

// history says how often a recipient was noted lately, and what came of the last time.
type history int8

const (
	never history = iota
	once
	often
	refused // often, and the last push was refused
)

// The two halves take some 20 MB at most, for all tenants together: a tenant with very many recipients pushes out those
// of others. A recipient that is forgotten costs no more than two refusals that Postgres decides without the cache.
const (
	recentRecipients = 250_000
	recentTime       = 10 * time.Minute // as long as the cache keeps a recipient's bookings
)

func newRecent(now func() time.Time) *recent {
	return &recent{now: now, newer: map[int64]history{}, most: recentRecipients}
}

// note notes a recipient, and says how often it was noted before.
func (r *recent) note(key int64) history {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); len(r.newer) >= r.most || now.Sub(r.since) >= recentTime {
		r.newer, r.older, r.since = map[int64]history{}, r.newer, now
	}
	before := r.history(key)
	r.newer[key] = max(before, min(before+1, often))
	return before
}

// record notes what became of a push to a recipient that was noted before.
func (r *recent) record(key int64, h history) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.older, key)
	r.newer[key] = h
}

// known reports whether a recipient was noted.
func (r *recent) known(key int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history(key) != never
}

func (r *recent) history(key int64) history { return max(r.newer[key], r.older[key]) }
