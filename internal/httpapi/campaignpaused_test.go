package httpapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sendquota/sendquota/internal/loop"
)

// said is a status of a campaign in an answer, or a resume, with when its request began and ended, by a clock that counts.
type said struct {
	status     string // resumed: by a resume
	by         string
	begun, end int64
}

const resumed = "resumed"

// againPausing finds an answer that says pausing, to a request that began after another answer said paused, without a resume between them.
func againPausing(all []said) (found *[2]said) {
	for _, pausing := range all {
		if pausing.status != "pausing" {
			continue
		}
		var last int64 // end of the last resume that may be before it
		for _, s := range all {
			if s.status == resumed && s.begun < pausing.end {
				last = max(last, s.end)
			}
		}
		for _, paused := range all {
			if paused.status == "paused" && paused.end < pausing.begun && paused.begun > last {
				return &[2]said{paused, pausing}
			}
		}
	}
	return nil
}

// TestAgainPausing: the property below finds what it is for, and no more.
func TestAgainPausing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		all   []said
		found bool
	}{
		"pausing after paused":           {[]said{{"paused", "", 1, 2}, {"pausing", "", 3, 4}}, true},
		"at the same time":               {[]said{{"paused", "", 1, 3}, {"pausing", "", 2, 4}}, false},
		"resumed between":                {[]said{{"paused", "", 1, 2}, {resumed, "", 3, 4}, {"pausing", "", 5, 6}}, false},
		"resumed at the same time":       {[]said{{"paused", "", 2, 3}, {resumed, "", 1, 8}, {"pausing", "", 5, 6}}, false},
		"resumed before":                 {[]said{{resumed, "", 1, 2}, {"paused", "", 3, 4}, {"pausing", "", 5, 6}}, true},
		"resumed afterwards":             {[]said{{"paused", "", 1, 2}, {"pausing", "", 3, 4}, {resumed, "", 5, 6}}, true},
		"pausing first":                  {[]said{{"pausing", "", 1, 2}, {"paused", "", 3, 4}}, false},
		"paused, then paused and others": {[]said{{"paused", "", 1, 2}, {"paused", "", 3, 4}, {"canceling", "", 5, 6}}, false},
	} {
		if found := againPausing(tt.all); (found != nil) != tt.found {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// pausings is one campaign that is paused and resumed by several callers, beside several workers, with all that was said of it.
type pausings struct {
	*bundle
	t     *testing.T
	path  string
	clock atomic.Int64
	mu    sync.Mutex
	all   []said
}

// ask makes a request, and records the state of the campaign in its answer.
func (x *pausings) ask(method, target, body string) {
	begun := x.clock.Add(1)
	r := ask(x.t, x.api, method, target, body, "Authorization", "Bearer "+x.key)
	end := x.clock.Add(1)
	note := func(of map[string]any) {
		if text, is := of["status"].(string); is && strings.HasSuffix(x.path, "/"+fmt.Sprint(of["id"])) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.all = append(x.all, said{text, method + " " + target, begun, end})
		}
	}
	switch all, listed := r.body["campaigns"].([]any); {
	case listed:
		for _, one := range all {
			note(one.(map[string]any))
		}
	case r.status == http.StatusConflict:
		if of, is := r.body["campaign"].(map[string]any); is {
			note(of)
		}
	case r.status < 300:
		note(r.body)
	default:
		x.t.Errorf("%s %s: %d %s", method, target, r.status, r.text)
	}
	if method == http.MethodPost && target == x.path+"/resume" {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.all = append(x.all, said{resumed, target, begun, end})
	}
}

// TestCampaigns_PausedStaysPaused: a campaign that was paused does not say pausing again, in any answer, until it is resumed: while several
// callers start, pause, resume and cancel it, several workers carry it on, and others read it in every way.
func TestCampaigns_PausedStaysPaused(t *testing.T) {
	if testing.Short() {
		t.Skip("only `make test-all` runs this story")
	}
	b := setupAlone(t)
	const rounds = 2
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	seen := map[string]int{}
	workers := []loop.Loop{b.campaignWorker(), b.campaignWorker(), b.campaignWorker()}
	for round := range rounds {
		audience := "recipient,first_name\n"
		for i := range 20 {
			audience += fmt.Sprintf("user-%d-%d,Anna\n", round, i)
		}
		x := &pausings{bundle: b, t: t, path: b.campaignFor(audience)}
		x.ask("POST", x.path+"/start", "")
		var callers, others sync.WaitGroup
		done := make(chan struct{})
		callers.Go(func() { x.resumes(rand.New(rand.NewPCG(seed, uint64(3*round)))) })
		for n := range 2 {
			callers.Go(func() { x.pauses(rand.New(rand.NewPCG(seed, uint64(3*round+n+1))), 40) })
		}
		beside := func(do func(turn int)) {
			others.Go(func() {
				for turn := 0; ; turn++ {
					select {
					case <-done:
						return
					default:
						do(turn)
					}
				}
			})
		}
		for _, w := range workers {
			beside(func(int) {
				if _, err := w.Pass(t.Context()); err != nil {
					t.Error(err)
				}
			})
			beside(x.read)
		}
		callers.Wait()
		close(done)
		others.Wait()
		x.ask("POST", x.path+"/cancel", "")
		for turn := 0; b.send("GET", x.path, "").at(t, "status") != "canceled"; turn++ {
			if _, err := workers[turn%len(workers)].Pass(t.Context()); err != nil { // one of them has the campaign
				t.Fatal(err)
			}
		}
		if found := againPausing(x.all); found != nil {
			t.Fatalf("%+v and later %+v", found[0], found[1])
		}
		for _, s := range x.all {
			seen[s.status]++
		}
	}
	for _, status := range []string{"pausing", "paused", resumed, "canceling"} {
		if seen[status] == 0 {
			t.Errorf("nothing was %s: %v", status, seen)
		}
	}
}

// resumes pauses the campaign, waits until it is paused, and resumes it some requests later, again and again.
func (x *pausings) resumes(random *rand.Rand) {
	for range 3 {
		x.ask("POST", x.path+"/pause", "")
		for x.send("GET", x.path, "").at(x.t, "status") != "paused" {
			x.pauses(random, 1)
		}
		x.pauses(random, random.IntN(12))
		x.ask("POST", x.path+"/resume", "")
	}
	if random.IntN(4) == 0 {
		x.ask("POST", x.path+"/cancel", "")
	}
}

// pauses pauses the campaign, or reads it, a number of times.
func (x *pausings) pauses(random *rand.Rand, times int) {
	for turn := range times {
		if random.IntN(2) == 0 {
			x.ask("POST", x.path+"/pause", "")
		} else {
			x.read(turn + random.IntN(5))
		}
	}
}

// read reads the campaign in one of the ways that show its status.
func (x *pausings) read(turn int) {
	switch turn % 5 {
	case 0, 1:
		x.ask("GET", x.path, "")
	case 2:
		x.ask("GET", "/v1/campaigns?page_size=1", "") // the newest one
	case 3:
		x.ask("GET", "/v1/campaigns?status=pausing", "")
	case 4:
		x.ask("PATCH", x.path, `{"name":"x"}`) // refused with the campaign
	}
}
