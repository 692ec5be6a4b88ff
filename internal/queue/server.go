package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"

	"github.com/sendquota/sendquota/internal/push"
)

// ServerConfig sets up the handling of wake-ups.
type ServerConfig struct {
	Concurrency int           // wake-ups handled at the same time
	Drain       time.Duration // how long running handlers may take when the server stops
	Log         *slog.Logger
}

// Serve calls handle for the wake-ups whose time has come, until ctx ends; it then waits for running handlers. A
// handler that fails is called again a little later, as often as it takes.
//
// The bulk queues have handlers of their own, so that no other wake-up waits behind theirs.
func (q *Queue) Serve(ctx context.Context, cfg ServerConfig, handle func(context.Context, push.WakeUp) error) error {
	for q.names() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	var bulks []string
	for _, name := range q.names() {
		bulks = append(bulks, bulk(name))
	}
	var servers [2]*asynq.Server
	for i, names := range [][]string{q.names(), bulks} {
		servers[i] = q.newServer(cfg, names)
		if err := servers[i].Start(handler(handle)); err != nil {
			return fmt.Errorf("serve queue: %w", err)
		}
	}
	<-ctx.Done()
	var stopping sync.WaitGroup
	for _, server := range servers {
		stopping.Go(server.Shutdown)
	}
	stopping.Wait()
	return nil
}

func (q *Queue) newServer(cfg ServerConfig, names []string) *asynq.Server {
	weights := map[string]int{}
	for _, name := range names {
		weights[name] = 1
	}
	return asynq.NewServerFromRedisClient(q.rdb, asynq.Config{
		Concurrency: cfg.Concurrency,
		Queues:      weights,
		// A push is to leave within 300 ms of its second: look often. The defaults are 1 s and 5 s.
		TaskCheckInterval:        50 * time.Millisecond,
		DelayedTaskCheckInterval: 50 * time.Millisecond,
		RetryDelayFunc:           again,
		IsFailure:                func(err error) bool { return !errors.As(err, new(push.ComeAgain)) },
		ShutdownTimeout:          cfg.Drain,
		Logger:                   &logger{log: cfg.Log},
		LogLevel:                 asynq.WarnLevel,
	})
}

func handler(handle func(context.Context, push.WakeUp) error) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		w, err := readWakeUp(t.Payload())
		if err != nil {
			return fmt.Errorf("read wake-up: %w: %w", err, asynq.SkipRetry)
		}
		return handle(ctx, w)
	})
}

// readWakeUp reads what arm has written. A forged wake-up makes a worker ask Postgres once more than it had to.
func readWakeUp(payload []byte) (push.WakeUp, error) {
	var w push.WakeUp
	if err := json.Unmarshal(payload, &w); err != nil {
		return push.WakeUp{}, errNoWakeUp // the text of err quotes what is there
	}
	if w.Push == uuid.Nil || w.Gen < 1 {
		return push.WakeUp{}, errNoWakeUp
	}
	return w, nil
}

var errNoWakeUp = errors.New("it is malformed")

// again says when a handler that failed is called again.
func again(failures int, err error, _ *asynq.Task) time.Duration {
	if early, ok := errors.AsType[push.ComeAgain](err); ok {
		return early.In
	}
	return min(time.Duration(failures+1)*time.Second, 5*time.Second)
}

// logger hands asynq's own messages on. Without Redis asynq complains many times a second, of which one is enough.
type logger struct {
	log *slog.Logger

	mu       sync.Mutex
	next     time.Time // when another complaint may pass
	heldBack int       // complaints since the last one that passed
}

func (l *logger) Debug(args ...any) { l.log.Debug("asynq: " + fmt.Sprint(args...)) }
func (l *logger) Info(args ...any)  { l.log.Info("asynq: " + fmt.Sprint(args...)) }
func (l *logger) Warn(args ...any)  { l.complain(slog.LevelWarn, args) }
func (l *logger) Error(args ...any) { l.complain(slog.LevelError, args) }
func (l *logger) Fatal(args ...any) { l.log.Error("asynq: " + fmt.Sprint(args...)) }

// complain lets one message a second pass, with the number of those that were held back before it.
func (l *logger) complain(level slog.Level, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.next) {
		l.heldBack++
		return
	}
	var more []any
	if l.heldBack > 0 {
		more = []any{"held_back", l.heldBack}
	}
	l.log.Log(context.Background(), level, "asynq: "+fmt.Sprint(args...), more...)
	l.next, l.heldBack = now.Add(time.Second), 0
}
