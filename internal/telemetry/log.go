// Package telemetry makes the service observable: its log and its metrics. Neither ever holds a message, a recipient,
// an address or a secret.
package telemetry

import (
	"io"
	"log/slog"
	"sync"
)

// NewLog returns a logger that writes one JSON object a line. What is less important than level is left out.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// Writer writes to another writer from a goroutine of its own, and combines lines while that writer is busy. A line
// costs its caller no system call, and is written within moments. If the other writer falls behind by more than a
// megabyte, callers wait for it.
type Writer struct {
	to io.Writer

	mu      sync.Mutex
	changed sync.Cond
	waiting []byte
	busy    bool // the goroutine runs
}

const maxWaiting = 1 << 20

// NewWriter returns a Writer. Close flushes it.
func NewWriter(to io.Writer) *Writer {
	w := &Writer{to: to}
	w.changed.L = &w.mu
	return w
}

// Write takes a line. It never fails: a log that cannot be written must not stop the service.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > maxWaiting {
		w.changed.Wait()
	}
	w.waiting = append(w.waiting, line...)
	if !w.busy {
		w.busy = true
		go w.drain()
	}
	return len(line), nil
}

// drain writes until the buffer is empty.
func (w *Writer) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var writing []byte
	for len(w.waiting) > 0 {
		writing, w.waiting = w.waiting, writing[:0]
		w.mu.Unlock()
		_, _ = w.to.Write(writing)
		w.mu.Lock()
		w.changed.Broadcast()
	}
	w.busy = false
	w.changed.Broadcast()
}

// Close waits until everything is written.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.busy {
		w.changed.Wait()
	}
	return nil
}
