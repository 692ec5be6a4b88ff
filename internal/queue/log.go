package queue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// logger forwards asynq's own messages. Without Redis asynq logs many times a second; one message a second passes.
type logger struct {
	log        *slog.Logger
	complaints throttle
}

func (l *logger) Debug(args ...any) { l.log.Debug("asynq: " + fmt.Sprint(args...)) }
func (l *logger) Info(args ...any)  { l.log.Info("asynq: " + fmt.Sprint(args...)) }
func (l *logger) Warn(args ...any)  { l.complain(slog.LevelWarn, args) }
func (l *logger) Error(args ...any) { l.complain(slog.LevelError, args) }
func (l *logger) Fatal(args ...any) { l.log.Error("asynq: " + fmt.Sprint(args...)) }

func (l *logger) complain(level slog.Level, args []any) {
	if more, pass := l.complaints.pass(); pass {
		l.log.Log(context.Background(), level, "asynq: "+fmt.Sprint(args...), more...)
	}
}

// throttle lets one message a second pass.
type throttle struct {
	mu       sync.Mutex
	next     time.Time // when another message may pass
	heldBack int       // messages since the last one that passed
}

// pass reports whether a message may pass. more is an attribute with the number of messages held back before it.
func (t *throttle) pass() (more []any, pass bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Before(t.next) {
		t.heldBack++
		return nil, false
	}
	if t.heldBack > 0 {
		more = []any{"held_back", t.heldBack}
	}
	t.next, t.heldBack = now.Add(time.Second), 0
	return more, true
}
