package pushes

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
)

// crowds remembers the recipients that have many bookings, and caches the bookings of a few of them, because reading a
// hundred thousand takes a tenth of a second.
//
// A cached view is used under the recipient's lock, and only if the recipient's version in the table crowds still equals
// the version of the view. Every transaction that adds or removes a booking changes the version.
type crowds struct {
	mu    sync.Mutex
	known map[quota.Recipient]*Crowd
	kept  int // how many bookings all cached views have
}

// Crowd is a recipient that has many bookings. The zero value has no cached view.
type Crowd struct {
	until   time.Time // when the recipient is forgotten
	view    quota.View
	version uuid.UUID // Nil: no view is cached
	kinds   bool      // the view has the kinds of bookings
}

const (
	crowdTime    = 10 * time.Minute
	mostCrowds   = 10_000
	mostKept     = 400_000 // bookings: about 20 MB
	crowdsAtOnce = 4       // with more crowded recipients, a transaction uses and fills no cache
)

// knows reports whether a recipient is known to have many bookings.
func (s *crowds) knows(r quota.Recipient) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[r]
	return c != nil && time.Now().Before(c.until)
}

// Put remembers a recipient as crowded, and caches its view if there is room.
func (s *crowds) Put(r quota.Recipient, c Crowd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(r)
	now := time.Now()
	for other, o := range s.known {
		if !now.Before(o.until) || len(s.known) >= mostCrowds || s.kept+c.view.Len() > mostKept && o.view.Len() > 0 {
			s.drop(other)
		}
	}
	if s.kept+c.view.Len() > mostKept {
		c = Crowd{}
	}
	c.until = now.Add(crowdTime)
	s.known[r] = &c
	s.kept += c.view.Len()
}

// drop forgets a recipient. The caller holds the lock.
func (s *crowds) drop(r quota.Recipient) {
	if c := s.known[r]; c != nil {
		s.kept -= c.view.Len()
		delete(s.known, r)
	}
}

// take removes a recipient's view from the cache, and returns it if it has this version. The caller may change it.
func (s *crowds) take(r quota.Recipient, version uuid.UUID, kinds bool) (v quota.View, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[r]
	if c == nil || c.version == uuid.Nil {
		return v, false
	}
	v, ok = c.view, c.version == version && c.kinds == kinds
	s.kept -= v.Len()
	c.view, c.version = quota.View{}, uuid.Nil
	return v, ok
}
