package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// task is a wake-up in asynq. The next release must be able to read it, too.
type task struct {
	First int   `json:"first"` // shard of the lane
	Last  int   `json:"last"`
	At    int64 `json:"at"` // Unix milliseconds
	Part  int   `json:"part"`
}

func taskOf(w push.WakeUp) task {
	return task{First: w.Lane.First, Last: w.Lane.Last, At: milliseconds(w.At), Part: w.Part}
}

// milliseconds rounds up, because rounding down would make a wake-up early.
func milliseconds(at time.Time) int64 { return at.Add(time.Millisecond - 1).UnixMilli() }

func writeWakeUp(w push.WakeUp) []byte {
	payload, err := json.Marshal(taskOf(w))
	if err != nil {
		panic(err) // four numbers
	}
	return payload
}

// readWakeUp reads the payload of writeWakeUp. A forged wake-up only costs a worker another query.
func readWakeUp(payload []byte) (push.WakeUp, error) {
	var t task
	if err := json.Unmarshal(payload, &t); err != nil {
		return push.WakeUp{}, errNoWakeUp // the text of err quotes the payload
	}
	if t.First < 0 || t.First > t.Last || t.Last >= push.Shards || t.At <= 0 || t.Part < 0 {
		return push.WakeUp{}, errNoWakeUp
	}
	return push.WakeUp{Lane: push.Lane{First: t.First, Last: t.Last}, At: time.UnixMilli(t.At).UTC(), Part: t.Part}, nil
}

var errNoWakeUp = errors.New("malformed payload")

// taskID begins with the time, because asynq takes tasks of the same second in the order of their ids.
func taskID(w push.WakeUp) string {
	t := taskOf(w)
	return fmt.Sprintf("%d:%d-%d:%d", t.At, t.First, t.Last, t.Part)
}

// wakeAt returns when asynq is to wake a worker, by the workers' clocks, which may be wrong: at the time itself, or
// when the time has passed by the clock of this process, whichever is earlier. A late wake-up makes pushes late.
func wakeAt(w push.WakeUp, now time.Time) time.Time {
	if here := now.Add(w.In); here.Before(w.At) {
		return here
	}
	return w.At
}

// asynq wakes a worker earlier by ahead, because asynq polls at intervals. The worker then waits for the exact
// time.
const ahead = time.Second
