package delivery

import (
	"slices"
	"sync"

	"github.com/sendquota/sendquota/internal/push"
)

// limitedLanes are the lanes with more due pushes than a channel had slots for, by channel. It is safe for concurrent use.
type limitedLanes struct {
	mu    sync.Mutex
	lanes map[string][]push.Lane
}

// add records that more may be due in a lane than a channel has slots for.
func (w *limitedLanes) add(channel string, l push.Lane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.lanes[channel], l) {
		w.lanes[channel] = append(w.lanes[channel], l)
	}
}

// remove removes a lane from those that wait for the slots of a channel.
func (w *limitedLanes) remove(channel string, l push.Lane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lanes[channel] = slices.DeleteFunc(w.lanes[channel], func(o push.Lane) bool { return o == l })
}

// others reports whether other lanes wait for the slots of a channel.
func (w *limitedLanes) others(channel string, l push.Lane) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.lanes[channel], func(o push.Lane) bool { return o != l })
}

// next removes and returns the lane that waits for the slots of a channel for longest.
func (w *limitedLanes) next(channel string) (l push.Lane, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lanes := w.lanes[channel]
	if len(lanes) == 0 {
		return l, false
	}
	w.lanes[channel] = lanes[1:]
	return lanes[0], true
}
