package queue

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// promptShare is how many of a tenant's wake-ups for one second come before those of tenants that have more.
const promptShare = 200

// shares counts the wake-ups of each tenant by the second for which they are, as far as this process armed them.
type shares struct {
	mu      sync.Mutex
	seconds map[int64]map[uuid.UUID]int
	oldest  int64 // second that is kept
}

// prompt counts a wake-up, and reports whether it is among the first of its tenant for its second. What is overdue
// counts for this second.
func (s *shares) prompt(w push.WakeUp, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if this := now.Unix(); this > s.oldest {
		s.oldest = this
		for second := range s.seconds {
			if second < this {
				delete(s.seconds, second)
			}
		}
	}
	second := max(w.At.Unix(), s.oldest)
	tenants := s.seconds[second]
	if tenants == nil {
		if s.seconds == nil {
			s.seconds = map[int64]map[uuid.UUID]int{}
		}
		tenants = map[uuid.UUID]int{}
		s.seconds[second] = tenants
	}
	tenants[w.Tenant]++
	return tenants[w.Tenant] <= promptShare
}
