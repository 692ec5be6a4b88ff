package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// serverTimeouts are a server's time-outs for clients, and its other bounds.
type serverTimeouts struct {
	header      time.Duration // for the whole header of a request
	request     time.Duration // for header and body
	answer      time.Duration // from the end of the header until the client has read the answer
	idle        time.Duration // between two requests on a connection
	stop        time.Duration // for requests under way when the program stops
	headerBytes int
	connections int
}

// timeouts returns the bounds of all servers; see docs/security.md.
func (a *App) timeouts() serverTimeouts {
	return serverTimeouts{
		header: 5 * time.Second, request: 30 * time.Second, answer: time.Minute, idle: 2 * time.Minute, stop: 15 * time.Second,
		headerBytes: 32 << 10, connections: cmp.Or(a.cfg.HTTP.MaxConnections, 10_000),
	}
}

// drain returns a context that ends HTTP.Drain after ctx. In between the API is not ready and closes every connection
// with an answer, so that callers find another API before this one stops listening.
func (a *App) drain(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		a.stopping.Store(true)
		a.log.Info("api is draining: /readyz answers 503, and connections close", "drain", a.cfg.HTTP.Drain.String())
		select {
		case <-time.After(a.cfg.HTTP.Drain):
			cancel()
		case <-later.Done():
		}
	})
	return later, func() { unwatch(); cancel() }
}

// serve answers HTTP on addr, the value of a variable, until ctx ends, and then finishes the requests under way.
// It sends the address to ready, unless ready is nil.
func (a *App) serve(ctx context.Context, name, variable, addr string, h http.Handler, ready chan<- string) error {
	listener, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %q: another program uses this address; stop it, or set %s to another host:port", variable, addr, variable)
	case err != nil:
		return fmt.Errorf("%s: %q: cannot listen: %w", variable, addr, err)
	}
	a.log.Info(name+" listening", "addr", listener.Addr().String())
	if ready != nil {
		ready <- listener.Addr().String()
	}
	return a.serveOn(ctx, name, listener, h, a.timeouts())
}

// serveOn is like serve on a listener, which it closes.
func (a *App) serveOn(ctx context.Context, name string, l net.Listener, h http.Handler, p serverTimeouts) error {
	limited := newLimitListener(l, p.connections)
	server := &http.Server{
		Handler:           endAmbiguous(serveHalfClosed(h)),
		ReadHeaderTimeout: p.header,
		ReadTimeout:       p.request,
		WriteTimeout:      p.answer,
		IdleTimeout:       p.idle,
		MaxHeaderBytes:    p.headerBytes,
		ConnState:         limited.watch,
		ConnContext:       withConn,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), p.stop)
		defer cancel()
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) { // slow clients are no error of the program
			a.log.Warn(name + " stops; some clients have not read their answers")
			err = server.Close()
		}
		stopped <- err
	}()
	if err := server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return <-stopped
}

// serveHalfClosed continues to serve a request after the caller has closed its half of the connection (RFC 9112, 9.6).
// net/http ends the context of a request when the connection has nothing more to read, although the caller may wait for the
// answer.
//
// A caller that is gone looks the same until the server writes to it. So nothing depends on this end: a request has its
// time-out, and a stream ends when it cannot be written. A broken connection still ends the request at once.
func serveHalfClosed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*trackedConn)
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		defer context.AfterFunc(r.Context(), func() {
			if !c.halfClosed.Load() {
				cancel()
			}
		})()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}
