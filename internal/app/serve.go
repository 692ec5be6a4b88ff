package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// serve answers HTTP on addr until ctx ends, and then finishes the requests
// under way. ready, unless nil, is told the address.
func (a *App) serve(ctx context.Context, name, addr string, h http.Handler, ready chan<- string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%s: %w (is another program using %s?)", name, err, addr)
	}
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	}()
	a.log.Info(name+" listening", "addr", listener.Addr().String())
	if ready != nil {
		ready <- listener.Addr().String()
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return <-stopped
}
