package app

import (
	"context"
	"io"
	"log"
	"os/signal"
	"syscall"
)

// UntilSignal returns a context that ends when the process is told to stop. A second signal kills it.
func UntilSignal() (context.Context, context.CancelFunc) {
	// net/http writes what a provider sends unasked to the standard logger.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
