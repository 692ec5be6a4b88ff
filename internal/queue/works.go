package queue

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/sendquota/sendquota/internal/redisscript"
)

// Works reports whether Redis does what the queue needs, for each queue of asynq: it runs scripts, and it accepts
// writes. A Redis that is out of memory, forbids scripts or is a replica answers a ping, but wakes no worker. Neither
// does a queue that is paused, or that has a key of another type: [*BrokenError].
func (q *Queue) Works(ctx context.Context) error {
	names := q.names()
	if len(names) == 0 {
		names = []string{"unnamed"}
	}
	keys, calls := make([][]string, len(names)), make([]redisscript.Call, len(names))
	for i, name := range names {
		keys[i] = []string{"sq:{" + name + "}:works"}
		for _, key := range asynqKeys {
			keys[i] = append(keys[i], "asynq:{"+name+"}:"+key)
		}
		calls[i] = worksScript.Call(keys[i])
	}
	answers, err := q.probing.RunAll(ctx, calls...)
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	for i, answer := range answers {
		switch wrong := answer[0] - 1; {
		case wrong == 1:
			return &BrokenError{"it is paused: " + keys[i][wrong] + " exists"}
		case wrong > 1:
			return &BrokenError{"the key " + keys[i][wrong] + " has another type than asynq needs"}
		}
	}
	return nil
}

// asynqKeys are the keys of an asynq queue that works.lua checks.
var asynqKeys = []string{"paused", "pending", "active", "scheduled", "retry", "archived", "lease"}

//go:embed works.lua
var worksSource string

var worksScript = redisscript.NewScript(worksSource)

// BrokenError: a queue wakes no worker, although Redis works.
type BrokenError struct{ why string }

// Error returns the reason.
func (e *BrokenError) Error() string { return "queue: " + e.why }

// State returns the state for health checks.
func (*BrokenError) State() string { return "queue_broken" }

// Detail returns the queue and the reason.
func (e *BrokenError) Detail() string { return e.why }
