package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/testenv"
)

// mutants runs the story of every mutant twice: with the mutant, and with the code as it is.
func mutants(t testenv.T, l *lab) {
	drawn := draw(l, slices.Clone(allMutants))
	programs := make([]string, len(drawn))
	var g errgroup.Group
	g.SetLimit(2) // compiling one mutant and linking another
	for i, m := range drawn {
		g.Go(func() (err error) {
			programs[i], err = l.compileMutant(t.Context(), m)
			return err
		})
	}
	testenv.Check(t, g.Wait())
	var stories errgroup.Group
	stories.SetLimit(8) // each has programs of its own, and some go by time
	for i, m := range drawn {
		for _, program := range []string{programs[i], ""} {
			stories.Go(func() error {
				return testenv.Run(t.Context(), func(t testenv.T) { l.tell(t, m, program) })
			})
		}
	}
	testenv.Check(t, stories.Wait())
}

func (l *lab) compileMutant(ctx context.Context, m mutant) (string, error) {
	o, err := mutated(ctx, m.mutations)
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.name, err)
	}
	bin, err := l.compile(ctx, "without-"+m.name, o, m.program)
	return filepath.Join(bin, m.program), err
}

// tell runs a story with the mutated programs in a folder; if it is empty, with the lab's.
func (l *lab) tell(t testenv.T, m mutant, program string) {
	name := "whole-" + m.name
	if program != "" {
		name = "without-" + m.name
	}
	world := small(name, fewLanes)
	world.horizon = 15 * time.Second
	b := l.setup(t, world)
	b.mutant = program
	var through string
	b.toRedis, through = testenv.Proxy(t, b.Redis)
	b.env = append(b.env, "REDIS_URL="+through)
	b.startAPI(0)
	m.story(b, b.newCaller())
	b.settle(time.Now().Add(time.Minute), 20*time.Second)
	j := b.check()
	if program == "" {
		l.report.record(b.name, j)
		return
	}
	found := strings.Join(j.found, "\n")
	caught := true
	for _, e := range m.evidence {
		if !strings.Contains(found, e) {
			caught = false
			l.report.violate("%s survives: the check %q found nothing", name, e)
		}
	}
	if caught {
		l.report.sometimes(fmt.Sprintf("mutant %s caught by %s", m.name, strings.Join(m.evidence, ", ")), 1)
	}
}

// flushedCache books a minute for each recipient, makes Redis forget it, and requests the same minute again: the cache
// alone would grant it.
func flushedCache(b *bundle, c *caller) {
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	for round := range 2 {
		for i := range 20 {
			c.submit(b.Context(), fmt.Sprint("r-", i), "", "", at.Add(time.Duration(round)*time.Second))
		}
		b.flush()
	}
}

// crowdedMove moves a push to a second after another one of its recipient.
func crowdedMove(b *bundle, c *caller) {
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range 10 {
		name := fmt.Sprint("r-", i)
		c.submit(b.Context(), name, "", "", at)
		c.move(b.Context(), c.submit(b.Context(), name, "", "", at.Add(10*time.Minute)), at.Add(time.Second))
	}
}

// heldUpWorker lets pushes fall due that were promised a window apart, while no
// worker runs: without the delivery gate they would leave together.
func heldUpWorker(b *bundle, c *caller) {
	now := time.Now().Truncate(time.Second)
	for i := range 10 {
		for n := range 3 {
			c.submit(b.Context(), fmt.Sprint("r-", i), "", "", now.Add(time.Duration(2*n)*time.Second))
		}
	}
	testenv.Sleep(b, 5*time.Second) // until all of them are due
	b.startWorker(nil)
}

// slowProvider holds a recipient's first push, so that the second one falls due
// while it is under way.
func slowProvider(b *bundle, c *caller) {
	now := time.Now().Truncate(time.Second)
	for i := range 10 {
		hangs := fmt.Sprintf("9-%d", i)
		c.submit(b.Context(), hangs, "", "", now)
		c.submit(b.Context(), hangs, "", "", now.Add(2*time.Second))
	}
	testenv.Sleep(b, 3*time.Second) // until both of each are due
	b.startWorker(nil)
}

// dyingSubmit kills the worker between the submit for an occurrence and its record.
func dyingSubmit(b *bundle, _ *caller) {
	b.startSchedules(3)
	b.startWorker([]string{"kill@occurrence.submitted:1"})
	b.endSchedules(true, 15*time.Second)
}

// deafRedis gives places back while Redis cannot be reached, and requests them again when it can: the cache alone would
// refuse them.
func deafRedis(b *bundle, c *caller) {
	rdb := testenv.RedisClient(b, b.Redis)
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range 5 {
		name := fmt.Sprint(farName, i)
		b.flush()
		c.submit(b.Context(), name, "", "", at.Add(time.Minute))
		o := c.submit(b.Context(), name, "", "", at) // has the cache load the recipient, behind the answer
		testenv.Until(b, 10*time.Millisecond, "the cache knows the recipient", func() bool { return len(rdb.Keys(b.Context(), "*:bookings").Val()) > 0 })
		b.toRedis.Sever()
		c.cancel(b.Context(), o)
		b.toRedis.Mend()
		testenv.Sleep(b, 1500*time.Millisecond) // after a failure the cache does without Redis for a second
		c.submit(b.Context(), name, "", "", at)
	}
}

// changedPolicy forbids what was allowed, and asks for it.
func changedPolicy(b *bundle, c *caller) {
	b.teams = b.newTeams()
	for i, forbidden := range []bool{false, true, false, true} {
		b.teams.setPolicy(b.Context(), forbidden)
		b.teams.ask(b.Context(), c, fmt.Sprint(teamName, i), flash, fmt.Sprint("change-", i), time.Now().Add(time.Hour).Truncate(time.Second))
	}
}

// secondThoughts makes recipients opt out of pushes that are already booked.
func secondThoughts(b *bundle, c *caller) {
	b.teams = b.newTeams()
	for i := range 4 {
		b.teams.ask(b.Context(), c, fmt.Sprint(teamName, i), news, fmt.Sprint("thought-", i), time.Now().Add(time.Second).Truncate(time.Second))
		b.teams.describe(b.Context(), i, true, false)
	}
	b.startWorker(nil)
}

// flushedQueue has Redis forget the wake-ups of pushes that are due soon.
func flushedQueue(b *bundle, c *caller) {
	b.dueSoon(c)
	rdb := testenv.RedisClient(b, b.Redis)
	testenv.Until(b, 10*time.Millisecond, "wake-ups are in the queue", func() bool { return len(rdb.Keys(b.Context(), "asynq:*:scheduled").Val()) > 0 })
	b.flush()
}

// frozenRedis stays so while pushes fall due.
func frozenRedis(b *bundle, c *caller) {
	b.dueSoon(c)
	b.toRedis.Freeze()
}

// dueSoon starts a worker, and submits pushes that are due in ten seconds. By then the worker has looked further ahead in all lanes, so
// it arms nothing of these: the API does, before it answers.
func (b *bundle) dueSoon(c *caller) {
	b.startWorker(nil)
	testenv.Until(b, 50*time.Millisecond, "the worker owns all lanes", func() bool {
		return testenv.Query[int](b, b.Database, `SELECT count(*) FROM lanes WHERE owned_until > clock_timestamp()`) == b.lanes
	})
	testenv.Sleep(b, 4*time.Second) // it looks once a second, 15 seconds ahead
	due := time.Now().Add(10 * time.Second).Truncate(time.Second)
	for i := range 10 {
		c.submit(b.Context(), fmt.Sprint("r-", i), "", "", due)
	}
}
