package pg

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// reach holds the outcome of a pool's last attempt to connect, and logs changes. It learns of all attempts, including
// those that no request waits for.
type reach struct {
	pool string // its name in the log
	log  *slog.Logger

	mu    sync.Mutex
	tried bool
	why   string // empty: the last attempt succeeded
}

// learn records the outcome of an attempt.
func (r *reach) learn(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	why := reason(err)
	r.mu.Lock()
	same := r.why == why
	r.tried, r.why = true, why
	r.mu.Unlock()
	switch {
	case same:
	case err != nil:
		r.log.Warn("cannot connect to Postgres", "pool", r.pool, "why", why, "error", err)
	default:
		r.log.Info("connected to Postgres again", "pool", r.pool)
	}
}

// reached reports whether the last attempt succeeded.
func (r *reach) reached() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried && r.why == ""
}

// reason returns a sentence about why a connection to Postgres failed. It names no host, role or database, because
// /readyz is public.
func reason(err error) string {
	var (
		unready *UnreadyError
		pgErr   *pgconn.PgError
		network *net.OpError
		lookup  *net.DNSError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &unready):
		return unready.detail
	case strings.Contains(err.Error(), "ValidateConnect failed"):
		return "no server matches target_session_attrs in DATABASE_URL"
	case errors.As(err, &pgErr):
		return "Postgres rejects the connection with the error " + pgErr.Code + "; the log has more"
	case errors.As(err, &lookup):
		return "cannot resolve the name of the server: " + lookup.Err
	case errors.As(err, &network) && network.Err != nil && !network.Timeout():
		return "cannot connect to the server: " + network.Err.Error()
	case pgconn.Timeout(err), errors.Is(err, context.DeadlineExceeded):
		return "the server does not answer in time"
	}
	return "the server cannot be used; the log has more"
}

// TraceConnectStart implements [pgx.ConnectTracer]. It does nothing.
func (r *reach) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd records a failed attempt. Success is recorded later, because the steps after the connect may still
// fail.
func (r *reach) TraceConnectEnd(_ context.Context, d pgx.TraceConnectEndData) {
	if d.Err != nil {
		r.learn(d.Err)
	}
}

// TraceQueryStart does nothing. pgx requires it of a tracer of connections.
func (r *reach) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd does nothing.
func (r *reach) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
