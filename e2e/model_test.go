package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

// The rules of the models. Their times lie in one minute of the future, which has room for a dozen of them.
var modelLimits = limits{{1, 3 * time.Second}, {3, 12 * time.Second}}

const modelRules = `[{name: first, limit: 1, window: 3s}, {name: second, limit: 3, window: 12s}]`

// model is a recipient whose pushes are submitted, canceled and moved one after
// another, each time through another API. It keeps its own record of its places,
// and checks every answer against that.
type model struct {
	t      *testing.T
	name   string
	apis   []*bundle
	excuse string // part of the detail that every 503 must have

	base     time.Time
	held     map[string]time.Time // places by push id
	requests int
	counts   [4]atomic.Int64 // of booked, refused, freed, unavailable

	failed bool // only the first wrong answer is reported: later ones follow from it
}

func (m *model) fail(format string, args ...any) {
	if !m.failed {
		m.t.Errorf(m.name+": "+format, args...)
	}
	m.failed = true
}

const (
	booked = iota
	refused
	freed
	unavailable
)

// lateDatabase is the only 503 that submits may have while Postgres works: a machine may be too busy for it.
const lateDatabase = "the database did not answer in time"

// someModels returns the number of models for one fault.
func someModels() int {
	if testing.Short() {
		return 12
	}
	return 24
}

// newModels returns n models without a booking. Their names begin with name.
func newModels(t *testing.T, name string, n int, excuse string, apis ...*bundle) []*model {
	base := time.Now().UTC().Add(time.Hour).Truncate(time.Minute)
	all := make([]*model, n)
	for i := range all {
		all[i] = &model{t: t, name: fmt.Sprintf("%s: model-%d", name, i), apis: apis, excuse: excuse, base: base, held: map[string]time.Time{}, requests: i}
	}
	return all
}

// runModels makes every model take a number of steps, all models at the same time. The returned function waits for
// them.
func runModels(all []*model, things int) (wait func()) {
	return runModelsUntil(all, things, func() bool { return true })
}

// runModelsUntil makes every model take a number of steps, and more until enough.
func runModelsUntil(all []*model, things int, enough func() bool) (wait func()) {
	var running sync.WaitGroup
	for _, m := range all {
		running.Go(func() {
			for n := 0; (n < things || !enough()) && !m.failed; n++ {
				m.step()
			}
		})
	}
	return running.Wait
}

// totals adds up what the models did.
func totals(all []*model) (sum [4]int64) {
	for _, m := range all {
		for i := range sum {
			sum[i] += m.counts[i].Load()
		}
	}
	return sum
}

// step does one thing. A place that was given back is taken again at once,
// through the other API.
func (m *model) step() {
	switch n := rand.N(10); {
	case n < 6 || len(m.held) == 0:
		m.submit(m.anyTime())
	case n < 8:
		id := m.anyPush()
		at := m.held[id]
		m.cancel(id)
		m.submit(at)
	default:
		id := m.anyPush()
		at := m.held[id]
		if m.move(id, m.anyTime()) {
			m.submit(at)
		}
	}
}

func (m *model) anyTime() time.Time { return m.base.Add(time.Duration(rand.N(60)) * time.Second) }

func (m *model) anyPush() string {
	ids := slices.Sorted(maps.Keys(m.held))
	return ids[rand.N(len(ids))]
}

// api is another one each time.
func (m *model) api() *bundle {
	m.requests++
	return m.apis[m.requests%len(m.apis)]
}

// ask repeats a request that was answered with 503 or 429, through the other API, until it has another answer: many at
// once may be more than a tenant's part. It does not wait for as long as Retry-After says: more requests meet the fault.
func (m *model) ask(method, path string, body any, headers ...string) answer {
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a, err := m.api().ask(method, path, body, headers...)
		switch {
		case err != nil:
			m.fail("%s %s: %v", method, path, err)
			return answer{}
		case a.status == http.StatusTooManyRequests && time.Now().Before(deadline):
			continue
		case a.status != http.StatusServiceUnavailable:
			return a
		}
		m.counts[unavailable].Add(1)
		if !strings.Contains(fmt.Sprint(a.body["detail"]), m.excuse) || a.header.Get("Retry-After") == "" || a.body["type"] != "urn:sendquota:problem:unavailable" || time.Now().After(deadline) {
			m.fail("%s %s: %v, Retry-After %q", method, path, a, a.header.Get("Retry-After"))
			return a
		}
	}
}

// submit expects the answer that follows from the model's record.
func (m *model) submit(at time.Time) {
	push := object{"recipient": m.name, "send_at": at.Format(time.RFC3339), "message": object{}}
	a := m.ask("POST", "/v1/pushes", push, "Idempotency-Key", fmt.Sprint(m.name, rand.Uint64()))
	if m.check("submit", a, http.StatusCreated, at, "") {
		m.held[a.body["id"].(string)] = at
		m.counts[booked].Add(1)
	}
}

func (m *model) move(id string, to time.Time) bool {
	a := m.ask("PATCH", "/v1/pushes/"+id, object{"send_at": to.Format(time.RFC3339)})
	ok := m.check("move", a, http.StatusOK, to, id)
	if ok {
		m.held[id] = to
		m.counts[freed].Add(1)
	}
	return ok
}

func (m *model) cancel(id string) {
	a := m.ask("POST", "/v1/pushes/"+id+"/cancel", nil)
	if a.status != http.StatusOK || a.body["status"] != "canceled" {
		m.fail("cancel: %v", a)
		return
	}
	delete(m.held, id)
	m.counts[freed].Add(1)
}

// check reports whether a place was granted, and fails the test if that, or a
// refusal's free times, are wrong.
func (m *model) check(what string, a answer, yes int, at time.Time, moving string) bool {
	var others []time.Time
	for id, t := range m.held {
		if id != moving {
			others = append(others, t)
		}
	}
	if modelLimits.fit(append(slices.Clip(others), at)) {
		if a.status != yes {
			m.fail("%s at %s was not granted, although its others are at %v: %v", what, at.Format(time.TimeOnly), clocks(others), a)
		}
		return a.status == yes
	}
	next := modelLimits.nearest(others, at, time.Second).Format(time.RFC3339)
	previous := modelLimits.nearest(others, at, -time.Second).Format(time.RFC3339)
	if a.status != http.StatusConflict || a.body["next_available_at"] != next || a.body["previous_available_at"] != previous {
		m.fail("%s at %s beside %v must be refused, with %s and %s: %v", what, at.Format(time.TimeOnly), clocks(others), previous, next, a)
	}
	m.counts[refused].Add(1)
	return false
}

func clocks(times []time.Time) (all []string) {
	for _, t := range slices.SortedFunc(slices.Values(times), time.Time.Compare) {
		all = append(all, t.Format(time.TimeOnly))
	}
	return all
}

// checkModels compares the pushes of every model with its record.
func checkModels(b *bundle, all []*model) {
	b.t.Helper()
	for _, m := range all {
		if m.failed {
			continue
		}
		_, a := b.call("GET", "/v1/pushes?page_size=500&status=scheduled&recipient="+url.QueryEscape(m.name), nil)
		got := map[string]time.Time{}
		for _, v := range a["pushes"].([]any) {
			one := v.(object)
			got[one["id"].(string)], _ = time.Parse(time.RFC3339, one["send_at"].(string))
		}
		if !maps.EqualFunc(got, m.held, time.Time.Equal) {
			b.t.Errorf("%s has %v, but was promised %v", m.name, got, m.held)
		}
	}
}
