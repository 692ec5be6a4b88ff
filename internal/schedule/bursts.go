package schedule

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

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
