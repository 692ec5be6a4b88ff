package delivery

import (
	"slices"

	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// sharing decides which service level is served next, so that each gets its share of what is sent, and what one does not
// use goes to the others: start-time fair queueing. Each level has a tag, which grows by one over the share with each push
// of the level, and the level with the least tag is next. A level that had nothing waiting gets no credit for that time. A
// level that was passed over, because its tenants are held, gets little: see [pace.MostBehind].
type sharing struct {
	shares push.Shares
	tags   pace.Tags
	served [len(push.Levels)]int // since the last exchange with other workers
}

// begins notes that a level has something waiting again.
func (s *sharing) begins(l push.Level) {
	i := l.Index()
	s.tags.Level[i] = max(s.tags.Level[i], s.tags.Now)
}

// order lists the levels, the next one to serve first.
func (s *sharing) order() (order [len(push.Levels)]push.Level) {
	order = push.Levels
	for i := 1; i < len(order); i++ {
		for j := i; j > 0 && s.tags.Level[order[j].Index()] < s.tags.Level[order[j-1].Index()]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	return order
}

// serve counts n pushes of a level; negative: they were not sent after all.
func (s *sharing) serve(l push.Level, n int) {
	i := l.Index()
	last := s.tags.Level[i] + float64(n-1)/float64(s.shares[i])
	s.tags.Level[i] += float64(n) / float64(s.shares[i])
	s.served[i] += n
	if n <= 0 {
		return
	}
	s.tags.Now = max(s.tags.Now, last)
	least := s.tags.Now - pace.MostBehind/float64(slices.Min(s.shares[:]))
	for j := range s.tags.Level {
		s.tags.Level[j] = max(s.tags.Level[j], least)
	}
}

// demand returns what other workers have to know, once.
func (s *sharing) demand(waits func(push.Level) bool) pace.Demand {
	d := pace.Demand{Shares: s.shares, Served: s.served}
	for i, l := range push.Levels {
		d.Waits[i] = waits(l)
	}
	s.served = [len(push.Levels)]int{}
	return d
}

// learn takes over the tags of all workers together. Without them, what was demanded is left for the next exchange.
func (s *sharing) learn(all *pace.Tags, demanded pace.Demand) {
	if all == nil {
		for i, n := range demanded.Served {
			s.served[i] += n
		}
		return
	}
	s.tags = *all
	for i, n := range s.served { // meanwhile
		s.tags.Level[i] += float64(n) / float64(s.shares[i])
	}
}
