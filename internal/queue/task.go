package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// task is a wake-up on its way through asynq. The next release reads it, too.
type task struct {
	First int   `json:"first"` // shard of the lane
	Last  int   `json:"last"`
	At    int64 `json:"at"` // Unix milliseconds
	Part  int   `json:"part"`
}

func taskOf(w push.WakeUp) task {
	return task{First: w.Lane.First, Last: w.Lane.Last, At: milliseconds(w.At), Part: w.Part}
}

// milliseconds rounds up, since a wake-up for less than its time would be early.
func milliseconds(at time.Time) int64 { return at.Add(time.Millisecond - 1).UnixMilli() }

func writeWakeUp(w push.WakeUp) []byte {
	payload, err := json.Marshal(taskOf(w))
	if err != nil {
		panic(err) // four numbers
	}
	return payload
}

// readWakeUp reads what writeWakeUp has written. A forged wake-up makes a worker ask Postgres once more than it had to.
func readWakeUp(payload []byte) (push.WakeUp, error) {
	var t task
	if err := json.Unmarshal(payload, &t); err != nil {
		return push.WakeUp{}, errNoWakeUp // the text of err quotes what is there
	}
	if t.First < 0 || t.First > t.Last || t.Last >= push.Shards || t.At <= 0 || t.Part < 0 {
		return push.WakeUp{}, errNoWakeUp
	}
	return push.WakeUp{Lane: push.Lane{First: t.First, Last: t.Last}, At: time.UnixMilli(t.At).UTC(), Part: t.Part}, nil
}

var errNoWakeUp = errors.New("it is malformed")

// taskID begins with the time: asynq takes those of the same second in the order of their ids.
func taskID(w push.WakeUp) string {
	t := taskOf(w)
	return fmt.Sprintf("%d:%d-%d:%d", t.At, t.First, t.Last, t.Part)
}

// wakeAt is when asynq is to wake a worker, by the workers' clocks, which may be wrong: at the time itself, or when as
// much time has passed by the clock of this process, whichever is earlier. One that comes too late makes pushes late.
func wakeAt(w push.WakeUp, now time.Time) time.Time {
	if here := now.Add(w.In); here.Before(w.At) {
		return here
	}
	return w.At
}

// ahead is how much earlier asynq wakes a worker: asynq looks only now and then what is due, and the worker, which waits
// for the time itself, is exact.
const ahead = time.Second
