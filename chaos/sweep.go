package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/testenv"
)

// crash is one case of the sweep: a fault at a point of a program.
type crash struct {
	how   string // kill or stop
	point failpoint.Point
	hit   int
	lanes int
}

func (c crash) String() string { return fmt.Sprintf("%s@%s:%d", c.how, c.point, c.hit) }

func (c crash) name() string {
	return fmt.Sprintf("sweep-%d-%s", c.lanes, strings.NewReplacer("@", "-", ":", "-").Replace(c.String()))
}

// sweptSchedules is the number of schedules that become due in a case, one in each second.
const sweptSchedules = 5

// sweptRecipients is the number of recipients of each campaign in a case.
const sweptRecipients = 40

// atOnce is the number of parallel cases per core: they wait for half of their time.
const atOnce = 2

// sweep kills or freezes a process at every point, each in a bundle of its own with the same work, and checks the
// result when everything has settled.
func sweep(t testenv.T, l *lab) {
	var crashes []crash
	for _, p := range failpoint.Points {
		for hit := 1; hit <= l.hits; hit++ {
			crashes = append(crashes, crash{"kill", p, hit, fewLanes})
		}
		crashes = append(crashes, crash{"stop", p, 1, fewLanes})
		if !ofUpkeep(p) || p == failpoint.LanesOwned { // the others do not know of lanes
			crashes = append(crashes, crash{"kill", p, 1, everyShard}, crash{"stop", p, 1, everyShard})
		}
	}
	crashes = draw(l, crashes)
	var (
		g   errgroup.Group
		mu  sync.Mutex
		hit = map[string]int{}
	)
	g.SetLimit(atOnce * runtime.NumCPU())
	for _, c := range crashes {
		g.Go(func() error {
			reached := false
			if err := testenv.Run(t.Context(), func(t testenv.T) { reached = l.crash(t, c) }); err != nil {
				t.Errorf("%s: %w", c.name(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			hit[c.how+" at "+string(c.point)] += count(reached)
			return t.Context().Err()
		})
	}
	testenv.Check(t, g.Wait())
	killed, stopped := 0, 0
	for _, p := range failpoint.Points {
		killed += hit["kill at "+string(p)]
		stopped += hit["stop at "+string(p)]
		for _, how := range []string{"kill", "stop"} {
			if l.sample == 1 && hit[how+" at "+string(p)] == 0 {
				l.report.sometimes(how+" at "+string(p), 0)
			}
		}
	}
	l.report.sometimes("process killed at a point", killed)
	l.report.sometimes("process frozen at a point", stopped)
}

// draw draws one in every -sample of some cases, and one at least, by the seed.
func draw[T any](l *lab, all []T) []T {
	rand.New(rand.NewPCG(l.seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:(len(all)+l.sample-1)/l.sample]
}

// ofAPI reports whether it is the API that comes to a point.
func ofAPI(p failpoint.Point) bool {
	what, _, _ := strings.Cut(string(p), ".")
	return what == "submit" || what == "book" || what == "batch" || what == "cancel" || what == "move" || p == failpoint.CampaignActed || p == failpoint.PauseCreated || p == failpoint.PauseDeleted || ofOwnChannel(p) || ofSuppression(p)
}

// ofCampaign reports whether a point is on the way of campaigns.
func ofCampaign(p failpoint.Point) bool {
	what, _, _ := strings.Cut(string(p), ".")
	return what == "campaign" || what == "chunk"
}

// ofBulk reports whether a point is on the way of bulk changes.
func ofBulk(p failpoint.Point) bool { return strings.HasPrefix(string(p), "bulk.") }

// world returns the configuration of a case.
func (c crash) world() config {
	world := small(c.name(), c.lanes)
	if ofUpkeep(c.point) {
		world.kept = keptBriefly
	}
	if ofAudit(c.point) {
		world.audit = 100 * time.Millisecond // a pause behind a chunk is so short, too, that passes end in seconds
	}
	return world
}

// crash runs one case, and returns whether the point was reached.
func (l *lab) crash(t testenv.T, c crash) (reached bool) {
	b := l.setup(t, c.world())
	plan := []string{c.String()}
	var apiPlan, workerPlan []string
	switch {
	case ofAPI(c.point):
		apiPlan = plan
	case c.point == failpoint.ReapFound || c.point == failpoint.ReapDone: // there must be something to reap
		workerPlan = append([]string{"kill@send.written:6"}, plan...)
	default:
		workerPlan = plan
	}
	victim := b.startAPI(0, apiPlan...)
	if ofAPI(c.point) {
		defer b.thaw(victim, c)()
	}
	if ofUpkeep(c.point) {
		b.prepareUpkeep()
	}
	b.smallWork()
	if !ofAPI(c.point) {
		b.startSchedules(sweptSchedules)
	}
	var campaigns map[string]string
	if ofCampaign(c.point) {
		campaigns = b.startCampaigns(sweptRecipients)
	}
	if ofBulk(c.point) {
		b.startBulks()
	}
	proceed := b.disturb(c.point)
	if c.point == failpoint.ExpireCommitted { // or the wake-ups of the late ones are faster
		b.flush()
		testenv.Sleep(t, 3*time.Second)
	}
	worker := b.startWorker(workerPlan)
	if !ofAPI(c.point) {
		victim = worker
		defer b.thaw(victim, c)()
	}
	if ofPause(c.point) { // what becomes due meanwhile waits
		testenv.Sleep(t, 4*time.Second)
	}
	proceed()
	if campaigns != nil {
		b.endCampaigns(campaigns, 40*time.Second)
	}
	if ofAudit(c.point) {
		b.orphanAudit(victim, c)
	}
	b.endBulks(40 * time.Second)
	b.endSchedules(true, 25*time.Second)
	b.conclude(25 * time.Second)
	return victim.said("at "+string(c.point)+",") > 0
}

// disturb pauses sending, makes channels of the tenant, or suppresses an address, if a point is on their way. The returned function resumes or changes them.
func (b *bundle) disturb(p failpoint.Point) (proceed func()) {
	switch {
	case ofPause(p):
		return b.stopSending()
	case ofOwnChannel(p):
		return b.makeChannels()
	case ofSuppression(p):
		b.suppress()
	}
	return func() {}
}

// thaw finds a program that has frozen itself, gives its work to another one of its kind until the lease is over, and
// resumes it. The returned function stops that.
func (b *bundle) thaw(victim *program, c crash) (end func()) {
	if c.how != "stop" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			if !victim.process().Frozen() {
				continue
			}
			if victim.Name == "worker" {
				b.startWorker(nil)
			}
			time.Sleep(2200 * time.Millisecond) // twice the lease, and the time of a reaper
			_ = victim.process().Thaw()
			return
		}
	}()
	return func() { cancel(); <-done }
}

// smallWork is the same for every case: single pushes with and without a key,
// a batch, cancels and moves, and recipients whose first attempt goes wrong.
func (b *bundle) smallWork() {
	c, ctx := b.newCaller(), b.Context()
	now := time.Now().Truncate(time.Second)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	for i := range 3 {
		name := fmt.Sprint("late-", i)
		c.submitBrief(ctx, name, "", name, now)
	}
	for i := range 4 {
		keyed, free := fmt.Sprint("keyed-", i), fmt.Sprint("free-", i)
		for s, key := range []string{"a", "b", "c"} {
			c.submit(ctx, keyed, "", keyed+key, at(2+s))
			c.submit(ctx, free, "", "", at(2+s))
		}
		far := c.submit(ctx, keyed, "", keyed+"far", at(3600))
		if c.cancel(ctx, far); i > 0 {
			far = c.submit(ctx, keyed, "", keyed+"again", at(3601))
			c.move(ctx, far, at(3610))
		}
	}
	for i := range behaviours {
		name := fmt.Sprintf("%d-manner", i)
		c.submit(ctx, name, "", name, at(2))
		c.submit(ctx, name+"-once", "once", name+"-once", at(2))
	}
	for i := range 3 {
		var wanted []op
		for n := range 4 {
			name := fmt.Sprintf("batch-%d-%d", i, n)
			wanted = append(wanted, op{Recipient: name, At: at(2).UTC()}, op{Recipient: name, At: at(4).UTC()}, op{Recipient: name, At: at(5).UTC()})
		}
		c.batch(ctx, fmt.Sprint("batch-", i), false, wanted)
	}
}

// conclude waits until all has settled, and checks the result.
func (b *bundle) conclude(timeout time.Duration) {
	b.settle(time.Now().Add(5*time.Minute), timeout)
	if b.upkeep != nil {
		b.endUpkeep(2 * timeout)
	}
	b.lab.report.record(b.name, b.check())
}
