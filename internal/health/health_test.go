package health

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type readOnly struct{ error }

func (readOnly) State() string { return "read_only" }

type explained struct{ error }

func (explained) Detail() string { return "it is away" }

// unsuited is a server that works, and lacks two things.
func unsuited() error {
	var u Deficits
	u.Add("few_locks", "it has %d", 64)
	u.Add("few_connections", "it has few")
	return u.Err()
}

func TestDeficits_Nothing(t *testing.T) {
	if err := new(Deficits).Err(); err != nil {
		t.Errorf("nothing lacks: %v", err)
	}
}

func TestCheck_Report(t *testing.T) {
	away := errors.New("away")
	for name, row := range map[string]struct {
		postgres, redis error
		overdue         time.Duration
		stopping        bool
		want            Report
	}{
		"all is well":      {want: Report{Status: Ready, Postgres: ok, Redis: ok, Queue: ok}},
		"without Redis":    {redis: away, want: Report{Status: Degraded, Postgres: ok, Redis: "unreachable", Queue: ok}},
		"pushes wait":      {overdue: 61 * time.Second, want: Report{Status: Degraded, Postgres: ok, Redis: ok, Queue: "overdue"}},
		"not for long":     {overdue: 60 * time.Second, want: Report{Status: Ready, Postgres: ok, Redis: ok, Queue: ok}},
		"a standby":        {postgres: readOnly{away}, want: Report{Status: Unavailable, Postgres: "read_only", Redis: ok, Queue: "unknown"}},
		"without anything": {postgres: away, redis: away, want: Report{Status: Unavailable, Postgres: "unreachable", Redis: "unreachable", Queue: "unknown"}},
		"with a reason":    {postgres: explained{away}, redis: explained{away}, want: Report{Status: Unavailable, Postgres: "unreachable", Redis: "unreachable", Queue: "unknown", Detail: "it is away; it is away"}},
		"badly set up":     {postgres: unsuited(), want: Report{Status: Degraded, Postgres: "few_locks", Redis: ok, Queue: ok, Detail: "it has 64; it has few"}},
		"about to stop":    {stopping: true, want: Report{Status: Stopping, Postgres: ok, Redis: ok, Queue: ok}},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Config{
				Postgres: func(context.Context) error { return row.postgres },
				Redis:    func(context.Context) error { return row.redis },
				Overdue:  func(context.Context) (time.Duration, error) { return row.overdue, nil },
				Stopping: func() bool { return row.stopping },
				MaxDue:   time.Minute,
			})
			if got := c.Check(t.Context()); got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
			if serves := row.want.Status == Ready || row.want.Status == Degraded; row.want.Serves() != serves {
				t.Errorf("it serves: %v", row.want.Serves())
			}
		})
	}
}

// TestCheck_AsksOnceASecond, whoever asks how often; but that the program stops is
// known at once.
func TestCheck_AsksOnceASecond(t *testing.T) {
	var (
		asked    atomic.Int64
		stopping atomic.Bool
		all      sync.WaitGroup
		now      = time.Now()
	)
	c := New(Config{
		Postgres: func(context.Context) error { asked.Add(1); return nil },
		Stopping: stopping.Load, Now: func() time.Time { return now },
	})
	for range 100 {
		all.Go(func() { c.Check(t.Context()) })
	}
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("Postgres was asked %d times", n)
	}
	stopping.Store(true)
	if got := c.Check(t.Context()).Status; got != Stopping || asked.Load() != 1 {
		t.Errorf("%s, asked %d times", got, asked.Load())
	}
	now = now.Add(keptFor)
	c.Check(t.Context())
	if n := asked.Load(); n != 2 {
		t.Errorf("Postgres was asked %d times", n)
	}
}
