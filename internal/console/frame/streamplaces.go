package frame

import (
	"sync"

	"github.com/google/uuid"
)

// streamPlaces bounds the open streams. The share of a tenant shrinks as others come: when all places are taken, a tenant with fewer places
// gets one from the tenant with the most. So no tenant keeps places that others need, however many tenants take all they can get. It is
// safe for concurrent use.
type streamPlaces struct {
	total, each int

	mu   sync.Mutex
	used int
	open map[uuid.UUID][]*streamPlace // by tenant, the oldest first
}

// streamPlace is one place of a tenant.
type streamPlace struct {
	of     *streamPlaces
	tenant uuid.UUID
	lost   chan struct{} // closed when another tenant gets the place
}

func newStreamPlaces(total, each int) *streamPlaces {
	return &streamPlaces{total: total, each: each, open: map[uuid.UUID][]*streamPlace{}}
}

// take gives a place to a tenant; false if the tenant has its share.
func (s *streamPlaces) take(tenant uuid.UUID) (*streamPlace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := len(s.open[tenant])
	if own >= s.each {
		return nil, false
	}
	if s.used >= s.total {
		most := s.most()
		if most == nil || len(s.open[most.tenant]) <= own+1 {
			return nil, false
		}
		s.remove(most)
		close(most.lost)
	}
	p := &streamPlace{of: s, tenant: tenant, lost: make(chan struct{})}
	s.open[tenant] = append(s.open[tenant], p)
	s.used++
	return p, true
}

// most returns the oldest place of the tenant with the most places; nil if all are free.
func (s *streamPlaces) most() *streamPlace {
	var most []*streamPlace
	for _, all := range s.open {
		if len(all) > len(most) {
			most = all
		}
	}
	if most == nil {
		return nil
	}
	return most[0]
}

// remove frees a place, unless it was lost before.
func (s *streamPlaces) remove(p *streamPlace) {
	all := s.open[p.tenant]
	for i := range all {
		if all[i] == p {
			s.used--
			if s.open[p.tenant] = append(all[:i:i], all[i+1:]...); len(all) == 1 {
				delete(s.open, p.tenant)
			}
			return
		}
	}
}

// release frees the place, unless it was lost.
func (p *streamPlace) release() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.remove(p)
}
