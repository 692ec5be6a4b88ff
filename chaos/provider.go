package main

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/sendquota/sendquota/internal/testenv"
)

// behaviour is a way to treat a request. The recipient of a push that was taken has
// it, whatever the answer says.
type behaviour struct {
	does  string // see testenv.Behaviours
	taken bool
}

// behaviours are all of them.
var behaviours = []behaviour{
	{"accept", true}, {"slowish", true}, {"large", true}, {"500", true}, {"drop", true}, {"hang", true}, {"drip-head", true},
	{"500", false}, {"drop", false}, {"hang", false}, {"429-1s", false}, {"503-1s", false}, {"400", false}, {"redirect", false},
}

// simulator is a provider that behaves well or badly.
type simulator struct {
	mode string // well, badly
	seed string
}

func (s simulator) choose(a *testenv.Arrival) {
	m := s.behaviour(a.Recipient, a.Push, a.Attempt)
	a.Does, a.Taken = m.does, m.taken
}

// behaviour decides by the push and the attempt, so that a run with the same seed
// and the same pushes meets the same. A recipient whose name begins with the
// number of a behaviour and a dash meets that one at the first attempt.
func (s simulator) behaviour(recipient, push string, attempt int) behaviour {
	for i, m := range behaviours {
		if strings.HasPrefix(recipient, fmt.Sprintf("%d-", i)) && attempt == 1 {
			return m
		}
	}
	if s.mode != "badly" {
		return behaviours[0]
	}
	h := fnv.New32a()
	fmt.Fprint(h, s.seed, push, attempt)
	if n := h.Sum32() % 100; n < 40 {
		return behaviours[n%uint32(len(behaviours))]
	}
	return behaviours[0]
}
