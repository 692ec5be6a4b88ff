package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// The kinds of operations.
const (
	submitted = "submit"
	canceled  = "cancel"
	moved     = "move"
)

// op is a caller's request and its answer, from the first try to the last.
type op struct {
	Kind      string    `json:"kind"`
	Recipient string    `json:"recipient"`
	Channel   string    `json:"channel,omitempty"`
	Category  string    `json:"category,omitempty"`
	ID        string    `json:"id,omitempty"` // of the push, as far as the caller knows it
	At        time.Time `json:"at,omitzero"`  // the send time that was asked for
	Key       string    `json:"key,omitempty"`
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Status    int       `json:"status"` // of the HTTP answer; 0: there was none
	Tries     int       `json:"tries"`
	Problem   string    `json:"problem,omitempty"`
	Replayed  bool      `json:"replayed,omitempty"`
	Possibly  bool      `json:"possibly_delivered,omitempty"`
	Batch     bool      `json:"batch,omitempty"`
	Brief     bool      `json:"brief,omitempty"` // it was to expire soon
}

// known reports whether the caller got an answer.
func (o op) known() bool { return o.Status != 0 }

// history records everything that callers did.
type history struct {
	mu     sync.Mutex
	ops    []op
	counts map[string]int // answers and troubles of single tries
}

func newHistory() *history { return &history{counts: map[string]int{}} }

func (h *history) add(ops ...op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, ops...)
}

func (h *history) count(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

func (h *history) all() []op {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]op(nil), h.ops...)
}

func (h *history) counted(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[what]
}

// write writes the history to a file, a line for each operation.
func (h *history) write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	enc := json.NewEncoder(file)
	for _, o := range h.all() {
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	return nil
}
