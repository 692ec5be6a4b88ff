package schedule

import (
	"sync"
	"time"
)

// recent remembers recipients for whom this process was asked to book something not long ago. A recipient's first push
// is hardly ever refused, so the cache is asked only from the second one on.
type recent struct {
	now func() time.Time

	mu           sync.Mutex
	newer, older map[int64]struct{} // recipient keys
	since        time.Time          // when newer was begun
	most         int                // recipients in each of the two
}

// The two halves take some 20 MB at most, for all tenants together: a tenant with very many recipients pushes out those
// of others. A recipient that is forgotten costs no more than one refusal that Postgres decides without the cache.
const (
	recentRecipients = 250_000
	recentTime       = 10 * time.Minute // as long as the cache keeps a recipient's bookings
)

func newRecent(now func() time.Time) *recent {
	return &recent{now: now, newer: map[int64]struct{}{}, most: recentRecipients}
}

// seen notes a recipient, and reports whether it was noted before.
func (r *recent) seen(key int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); len(r.newer) >= r.most || now.Sub(r.since) >= recentTime {
		r.newer, r.older, r.since = map[int64]struct{}{}, r.newer, now
	}
	if _, known := r.newer[key]; known {
		return true
	}
	r.newer[key] = struct{}{}
	_, known := r.older[key]
	return known
}
