package schedule

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// shares counts each tenant's pushes by the second for which they are booked, as far as this process booked them not
// long ago. Those beyond promptShare are bulk: they are sent after those of other tenants that are due by then.
type shares struct {
	mu           sync.Mutex
	newer, older map[share]int
}

type share struct {
	tenant uuid.UUID
	second int64 // Unix
}

const (
	// promptShare is how many pushes of a tenant for one second are not bulk.
	promptShare = 200
	// rememberedShares are in each of the two halves, which take some 20 MB at most. A tenant that uses more seconds
	// between two pushes for the same one is no crowd.
	rememberedShares = 100_000
)

func newShares() *shares { return &shares{newer: map[share]int{}} }

// bulk counts a push, and reports whether the tenant has many for its second.
func (s *shares) bulk(tenant uuid.UUID, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.newer) >= rememberedShares {
		s.newer, s.older = map[share]int{}, s.newer
	}
	key := share{tenant, at.Unix()}
	n, known := s.newer[key]
	if !known {
		n = s.older[key]
	}
	s.newer[key] = n + 1
	return n >= promptShare
}
