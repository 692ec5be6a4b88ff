package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// limits are the rules of the oracle: brute force, and so evidently right.
type limits []struct {
	limit  int
	window time.Duration
}

// fit sorts the times, and slides every window over them.
func (l limits) fit(times []time.Time) bool {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	for _, r := range l {
		for i := r.limit; i < len(times); i++ {
			if times[i].Sub(times[i-r.limit]) < r.window {
				return false
			}
		}
	}
	return true
}

// nearest tries one second after another from at until one fits.
func (l limits) nearest(times []time.Time, at time.Time, step time.Duration) time.Time {
	for !l.fit(append(slices.Clip(times), at)) {
		at = at.Add(step)
	}
	return at
}

// The rules of the worlds in which people live. Their times lie in one minute
// of the future, which has room for a dozen of them.
var peopleLimits = limits{{1, 3 * time.Second}, {3, 12 * time.Second}}

const peopleRules = `[{name: first, limit: 1, window: 3s}, {name: second, limit: 3, window: 12s}]`

// person is a recipient whose pushes are submitted, canceled and moved, one
// after another, now through this API, now through that. It keeps its own
// account of what it was promised, and holds every answer to it.
type person struct {
	t     *testing.T
	name  string
	apis  []*world
	keyed bool // with an Idempotency-Key on every submit: then 503 is allowed, and repeated

	base   time.Time
	held   map[string]time.Time // places by push id
	turn   int
	counts [4]atomic.Int64 // of booked, refused, freed, unavailable

	wronged bool // one complaint is enough: what follows follows from it
}

func (p *person) complain(format string, args ...any) {
	if !p.wronged {
		p.t.Errorf(p.name+": "+format, args...)
	}
	p.wronged = true
}

const (
	booked = iota
	refused
	freed
	unavailable
)

// people are so many persons, for whom nothing is booked.
func people(t *testing.T, n int, keyed bool, apis ...*world) []*person {
	base := time.Now().UTC().Add(time.Hour).Truncate(time.Minute)
	all := make([]*person, n)
	for i := range all {
		all[i] = &person{t: t, name: fmt.Sprintf("person-%d", i), apis: apis, keyed: keyed, base: base, held: map[string]time.Time{}, turn: i}
	}
	return all
}

// live lets each do so many things, one after another, but all people at the
// same time. The returned function waits until they have done them.
func live(all []*person, things int) (wait func()) {
	var running sync.WaitGroup
	for _, p := range all {
		running.Go(func() {
			for n := 0; n < things && !p.wronged; n++ {
				p.step()
			}
		})
	}
	return running.Wait
}

// tally adds up what people did.
func tally(all []*person) (sum [4]int64) {
	for _, p := range all {
		for i := range sum {
			sum[i] += p.counts[i].Load()
		}
	}
	return sum
}

// step does one thing. A place that was given back is taken again at once,
// through the other API.
func (p *person) step() {
	switch n := rand.N(10); {
	case n < 6 || len(p.held) == 0:
		p.submit(p.anyTime())
	case n < 8:
		id := p.anyPush()
		at := p.held[id]
		p.cancel(id)
		p.submit(at)
	default:
		id := p.anyPush()
		at := p.held[id]
		if p.move(id, p.anyTime()) {
			p.submit(at)
		}
	}
}

func (p *person) anyTime() time.Time { return p.base.Add(time.Duration(rand.N(60)) * time.Second) }

func (p *person) anyPush() string {
	ids := slices.Sorted(maps.Keys(p.held))
	return ids[rand.N(len(ids))]
}

// api is another one each time.
func (p *person) api() *world {
	p.turn++
	return p.apis[p.turn%len(p.apis)]
}

// ask repeats a keyed request that was answered with 503, through the other
// API, until it has another answer.
func (p *person) ask(method, path string, body any, headers ...string) answer {
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a, err := p.api().ask(method, path, body, headers...)
		switch {
		case err != nil:
			p.complain("%s %s: %v", method, path, err)
			return answer{}
		case a.status != http.StatusServiceUnavailable:
			return a
		}
		p.counts[unavailable].Add(1)
		if !p.keyed || a.header.Get("Retry-After") == "" || a.body["type"] != "urn:sendquota:problem:unavailable" || time.Now().After(deadline) {
			p.complain("%s %s: %v, Retry-After %q", method, path, a, a.header.Get("Retry-After"))
			return a
		}
	}
}

// submit wants the answer that the account demands.
func (p *person) submit(at time.Time) {
	var headers []string
	if p.keyed {
		headers = []string{"Idempotency-Key", fmt.Sprint(p.name, rand.Uint64())}
	}
	a := p.ask("POST", "/v1/pushes", object{"recipient": p.name, "send_at": at.Format(time.RFC3339), "message": object{}}, headers...)
	if p.judge("submit", a, http.StatusCreated, at, "") {
		p.held[a.body["id"].(string)] = at
		p.counts[booked].Add(1)
	}
}

func (p *person) move(id string, to time.Time) bool {
	a := p.ask("PATCH", "/v1/pushes/"+id, object{"send_at": to.Format(time.RFC3339)})
	ok := p.judge("move", a, http.StatusOK, to, id)
	if ok {
		p.held[id] = to
		p.counts[freed].Add(1)
	}
	return ok
}

func (p *person) cancel(id string) {
	a := p.ask("POST", "/v1/pushes/"+id+"/cancel", nil)
	if a.status != http.StatusOK || a.body["status"] != "canceled" {
		p.complain("cancel: %v", a)
		return
	}
	delete(p.held, id)
	p.counts[freed].Add(1)
}

// judge reports whether a place at a time was given, and whether that, and a
// refusal's free times, are right.
func (p *person) judge(what string, a answer, yes int, at time.Time, moving string) bool {
	var others []time.Time
	for id, t := range p.held {
		if id != moving {
			others = append(others, t)
		}
	}
	if peopleLimits.fit(append(slices.Clip(others), at)) {
		if a.status != yes {
			p.complain("%s at %s was not granted, although its others are at %v: %v", what, at.Format(time.TimeOnly), clocks(others), a)
		}
		return a.status == yes
	}
	next := peopleLimits.nearest(others, at, time.Second).Format(time.RFC3339)
	previous := peopleLimits.nearest(others, at, -time.Second).Format(time.RFC3339)
	if a.status != http.StatusConflict || a.body["next_available_at"] != next || a.body["previous_available_at"] != previous {
		p.complain("%s at %s beside %v must be refused, with %s and %s: %v", what, at.Format(time.TimeOnly), clocks(others), previous, next, a)
	}
	p.counts[refused].Add(1)
	return false
}

func clocks(times []time.Time) (all []string) {
	for _, t := range slices.SortedFunc(slices.Values(times), time.Time.Compare) {
		all = append(all, t.Format(time.TimeOnly))
	}
	return all
}

// wantAccounts wants the record of everybody's pushes to be their account.
func wantAccounts(w *world, all []*person) {
	w.t.Helper()
	for _, p := range all {
		if p.wronged {
			continue
		}
		_, a := w.call("GET", "/v1/pushes?page_size=500&status=scheduled&recipient="+p.name, nil)
		got := map[string]time.Time{}
		for _, v := range a["pushes"].([]any) {
			one := v.(object)
			got[one["id"].(string)], _ = time.Parse(time.RFC3339, one["send_at"].(string))
		}
		if !maps.EqualFunc(got, p.held, time.Time.Equal) {
			w.t.Errorf("%s has %v, but was promised %v", p.name, got, p.held)
		}
	}
}
