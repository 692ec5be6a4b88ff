package main

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/sendquota/sendquota/internal/testenv"
)

// manner is a way to treat a request. The recipient of a push that was taken has
// it, whatever the answer says.
type manner struct {
	does  string // see testenv.Manners
	taken bool
}

// manners are all of them.
var manners = []manner{
	{"accept", true}, {"slowish", true}, {"large", true}, {"500", true}, {"drop", true}, {"hang", true}, {"drip-head", true},
	{"500", false}, {"drop", false}, {"hang", false}, {"429-1s", false}, {"503-1s", false}, {"400", false}, {"redirect", false},
}

// simulator is a provider that behaves well or badly.
type simulator struct {
	behaviour string // well, badly
	seed      string
}

func (s simulator) choose(a *testenv.Arrival) {
	m := s.manner(a.Recipient, a.Push, a.Attempt)
	a.Does, a.Taken = m.does, m.taken
}

// manner decides by the push and the attempt, so that a run with the same seed
// and the same pushes meets the same. A recipient whose name begins with the
// number of a manner and a dash meets that at the first attempt.
func (s simulator) manner(recipient, push string, attempt int) manner {
	for i, m := range manners {
		if strings.HasPrefix(recipient, fmt.Sprintf("%d-", i)) && attempt == 1 {
			return m
		}
	}
	if s.behaviour != "badly" {
		return manners[0]
	}
	h := fnv.New32a()
	fmt.Fprint(h, s.seed, push, attempt)
	if n := h.Sum32() % 100; n < 40 {
		return manners[n%uint32(len(manners))]
	}
	return manners[0]
}
