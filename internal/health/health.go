// Package health reports whether a program can do its work: for probes of load balancers and of Kubernetes, and for
// operators on call.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Report is the state of a program and of its servers.
type Report struct {
	Status   string `json:"status" enum:"ready,degraded,unavailable,stopping" doc:"degraded: everything works, only slower. stopping: send requests elsewhere."`
	Postgres string `json:"postgres" enum:"ok,unreachable,wrong_encoding,read_only,not_migrated,not_writable,old_version,few_locks,few_connections" doc:"wrong_encoding: the database is not in UTF-8. read_only: it is a standby. not_migrated: it lacks a migration of this program. not_writable: the role may not write. The program works in spite of the others: old_version: Postgres is older than 15. few_locks: its max_locks_per_transaction is below 256. few_connections: it allows fewer connections than an API and a worker open."`
	Redis    string `json:"redis" enum:"ok,unreachable,queue_broken,no_time,evicts,old_version" doc:"unreachable: it does not answer, or does not write and run scripts. queue_broken: a queue is paused, or a key of it has the wrong type; workers do without. no_time: TIME is refused, so speed limits cannot be decided. evicts: its maxmemory-policy is not noeviction. old_version: it is older than 6.2."`
	Queue    string `json:"queue" enum:"ok,overdue,unknown" doc:"overdue: a push has been due for longer than delivery.arm_lease: the queue wakes no worker, workers are too few, or a provider accepts nothing. Workers find such pushes in Postgres."`
	Detail   string `json:"detail,omitempty" doc:"What is wrong with Postgres or Redis, and what to do."`
}

// The states of a program.
const (
	Ready       = "ready"
	Degraded    = "degraded"
	Unavailable = "unavailable"
	Stopping    = "stopping"
)

// ok is the state of a working server.
const ok = "ok"

// Serves reports whether the program can serve requests.
func (r Report) Serves() bool { return r.Status == Ready || r.Status == Degraded }

// Config holds the checks of a [Checker].
type Config struct {
	Postgres func(context.Context) error // its error may have a State() string, which is shown, and a Usable() bool; nil: it works
	Redis    func(context.Context) error // nil: it works
	Overdue  func(context.Context) (time.Duration, error)
	MaxDue   time.Duration    // how long a push may be due
	Stopping func() bool      // nil: never
	Now      func() time.Time // nil: time.Now
}

// pingTime bounds a check of a server, and keptFor is how long its result is cached, so that frequent checks do not
// reach the server.
const (
	pingTime = 2 * time.Second
	keptFor  = time.Second
)

// Checker determines the state of a program. It is safe for concurrent use.
type Checker struct {
	cfg Config

	mu    sync.Mutex
	last  Report
	until time.Time
}

// New returns a checker.
func New(cfg Config) *Checker {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Checker{cfg: cfg}
}

// Check returns the current state of the program, or the one of a moment ago.
func (c *Checker) Check(ctx context.Context) Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cfg.Now().Before(c.until) {
		c.last = c.ask(context.WithoutCancel(ctx)) // other callers wait for it, too
		c.until = c.cfg.Now().Add(keptFor)
	}
	r := c.last
	if c.cfg.Stopping != nil && c.cfg.Stopping() {
		r.Status = Stopping
	}
	return r
}

// ask checks Postgres and Redis at the same time.
func (c *Checker) ask(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	r := Report{Status: Ready}
	var both sync.WaitGroup
	var details [2]string
	both.Go(func() { r.Redis, details[1], _ = state(ctx, c.cfg.Redis) })
	var usable bool
	r.Postgres, details[0], usable = state(ctx, c.cfg.Postgres)
	r.Queue = c.queue(ctx, usable)
	both.Wait()
	r.Detail = strings.Trim(strings.Join(details[:], "; "), "; ")
	switch {
	case !usable:
		r.Status = Unavailable
	case r.Postgres != ok || r.Redis != ok || r.Queue != ok:
		r.Status = Degraded
	}
	return r
}

// queue returns whether due pushes are sent.
func (c *Checker) queue(ctx context.Context, postgres bool) string {
	if c.cfg.Overdue == nil {
		return ok
	}
	overdue, err := c.cfg.Overdue(ctx)
	switch {
	case !postgres || err != nil:
		return "unknown"
	case overdue > c.cfg.MaxDue:
		return "overdue"
	}
	return ok
}

// stated is an error with a word for the state.
type stated interface{ State() string }

// detailed is an error with a description that any client may see.
type detailed interface{ Detail() string }

// usable is an error of a working server that lacks something.
type usable interface{ Usable() bool }

func state(ctx context.Context, ask func(context.Context) error) (word, detail string, works bool) {
	if ask == nil {
		return ok, "", true
	}
	err := ask(ctx)
	if err == nil {
		return ok, "", true
	}
	var u usable
	works = errors.As(err, &u) && u.Usable()
	var d detailed
	if errors.As(err, &d) {
		detail = d.Detail()
	}
	var s stated
	if errors.As(err, &s) {
		return cmp.Or(s.State(), "unreachable"), detail, works
	}
	return "unreachable", detail, works
}

// Deficits lists what sendquota needs of a server and does not find, although the server works. The zero value lists
// nothing.
type Deficits struct{ states, details []string }

// Add adds something that the server lacks: a word for it, and a sentence that ends with what to do.
func (u *Deficits) Add(state, format string, args ...any) {
	u.states = append(u.states, state)
	u.details = append(u.details, fmt.Sprintf(format, args...))
}

// Err returns u as an error, or nil if the server lacks nothing.
func (u *Deficits) Err() error {
	if len(u.states) == 0 {
		return nil
	}
	return u
}

// Error returns all sentences.
func (u *Deficits) Error() string { return strings.Join(u.details, "; ") }

// State returns the word for the first thing that the server lacks.
func (u *Deficits) State() string { return u.states[0] }

// Detail returns all sentences. They name no host, role or database.
func (u *Deficits) Detail() string { return u.Error() }

// Usable is true: the program works with the server.
func (*Deficits) Usable() bool { return true }
