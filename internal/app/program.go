package app

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/telemetry"
)

// Service runs one of the two services with the settings of the environment,
// until the process is told to stop.
func Service(run func(*App, context.Context) error) error {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := UntilSignal()
	defer stop()
	out := telemetry.NewWriter(os.Stderr)
	defer out.Close()
	log := telemetry.NewLog(out, cfg.LogLevel)
	if os.Getenv("GOGC") == "" {
		// The heap is small and turns over fast: let it grow to some hundred
		// megabytes rather than collect it many times a second.
		debug.SetGCPercent(400)
	}
	a, err := Open(ctx, cfg, log)
	if err != nil {
		return err
	}
	err = run(a, ctx)
	log.Info("stopped")
	return errors.Join(err, a.Close())
}
