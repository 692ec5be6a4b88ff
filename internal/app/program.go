package app

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/telemetry"
)

// Service runs one of the two services with the settings of the environment, until a signal stops the process.
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

// UntilSignal returns a context that ends with the first SIGINT or SIGTERM. A second signal kills the process.
func UntilSignal() (context.Context, context.CancelFunc) {
	// net/http writes unexpected data of a provider to the standard logger.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// warn logs at the start probably unintended settings, and servers that do not answer or lack something. The services start anyway, and
// work when the servers are back.
func (a *App) warn(ctx context.Context) {
	for _, warning := range a.cfg.Warnings() {
		a.log.Warn(warning)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := a.store.Ready(ctx); err != nil {
		a.log.Warn("Postgres cannot be used yet; retrying", "error", err)
	} else {
		if newer, _ := a.store.Newer(ctx); newer != "" {
			a.log.Warn(newer)
		}
		if err := a.store.CheckServer(ctx); err != nil {
			a.log.Warn("Postgres has unsuitable settings; see docs/operations.md", "error", err)
		}
	}
	if err := a.queue.Works(ctx); err != nil {
		a.log.Warn("Redis does not work yet; continuing without it, more slowly", "error", err)
	} else if err := a.queue.CheckServer(ctx); err != nil {
		a.log.Warn("Redis has unsuitable settings; see docs/operations.md", "error", err)
	}
}

// Load reads the settings of the services like [config.Load]. It also creates every part with readable settings, and drops
// it, to find errors such as an invalid key or an unreadable file. It reports all errors at once.
func Load(environ []string) (config.Config, error) {
	cfg, err := config.Load(environ)
	var read config.Errors
	errors.As(err, &read)
	wrong := []error{err}
	for _, c := range cfg.Channels {
		if !read.Concern("channels." + c.Name) {
			_, err := newChannel(c, slog.New(slog.DiscardHandler))
			wrong = append(wrong, err)
		}
	}
	if !read.Concern("console.oidc") {
		_, err := openOIDC(cfg.Console.OIDC)
		wrong = append(wrong, err)
	}
	if cfg.RedisURL != "" {
		_, err := redisOptions(cfg.RedisURL, 0)
		wrong = append(wrong, err)
	}
	if cfg.DatabaseURL != "" {
		wrong = append(wrong, pg.CheckURL(string(cfg.DatabaseURL)))
	}
	return cfg, errors.Join(wrong...)
}
