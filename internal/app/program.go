package app

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/telemetry"
)

// Service runs one of the two services with the settings of the environment, until the process is told to stop.
func Service(run func(*App, context.Context) error) error {
	cfg, err := Load(os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := UntilSignal()
	defer stop()
	out := telemetry.NewWriter(os.Stderr)
	defer out.Close()
	defer tendMemory()()
	logger := telemetry.NewLog(out, cfg.LogLevel)
	defer logStacks(logger)()
	a, err := Open(ctx, cfg, logger)
	if err != nil {
		return err
	}
	a.warn(ctx)
	err = run(a, ctx)
	a.log.Info("stopped")
	return errors.Join(err, a.Close())
}

// UntilSignal returns a context that ends when the process is told to stop. A second signal kills it.
func UntilSignal() (context.Context, context.CancelFunc) {
	// net/http writes what a provider sends unasked to the standard logger.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// warn logs at the start what the settings hardly mean, and what does not answer. The services start all the same, and carry on when servers
// come back.
func (a *App) warn(ctx context.Context) {
	for _, warning := range a.cfg.Warnings() {
		a.log.Warn(warning)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := a.store.Ready(ctx); err != nil {
		a.log.Warn("Postgres cannot be used yet", "error", err)
	} else {
		if newer, _ := a.store.Newer(ctx); newer != "" {
			a.log.Warn(newer)
		}
		if err := a.store.Suits(ctx); err != nil {
			a.log.Warn("Postgres is not set up for this", "error", err)
		}
	}
	if err := a.queue.Works(ctx); err != nil {
		a.log.Warn("Redis does not answer yet; everything goes on without it, more slowly", "error", err)
	} else if err := a.queue.Suits(ctx); err != nil {
		a.log.Warn("Redis is not set up for this", "error", err)
	}
}
