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

// reach is whether a pool could connect the last time that it tried, and else why not. It is told of every attempt, also of
// those that no request waits for, and logs what has changed.
type reach struct {
	pool string // its name in the log
	log  *slog.Logger

	mu    sync.Mutex
	tried bool
	why   string // empty: it could
}

// learn takes the result of an attempt.
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
		r.log.Warn("Postgres cannot be connected to", "pool", r.pool, "why", why, "error", err)
	default:
		r.log.Info("Postgres can be connected to again", "pool", r.pool)
	}
}

// reached reports whether the last attempt succeeded.
func (r *reach) reached() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried && r.why == ""
}

// reason says in a sentence why Postgres cannot be connected to. It names no host, role or database: anybody may ask
// /readyz.
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
		return "no server is as target_session_attrs in DATABASE_URL asks for"
	case errors.As(err, &pgErr):
		return "Postgres refuses the connection with the error " + pgErr.Code + "; the log has more"
	case errors.As(err, &lookup):
		return "the name of the server cannot be looked up: " + lookup.Err
	case errors.As(err, &network) && network.Err != nil && !network.Timeout():
		return "there is no connection to the server: " + network.Err.Error()
	case pgconn.Timeout(err), errors.Is(err, context.DeadlineExceeded):
		return "the server does not answer in time"
	}
	return "the server cannot be used; the log has more"
}

// TraceConnectStart is that of [pgx.ConnectTracer].
func (r *reach) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd notes that an attempt failed. One that did not may still fail at what comes after it.
func (r *reach) TraceConnectEnd(_ context.Context, d pgx.TraceConnectEndData) {
	if d.Err != nil {
		r.learn(d.Err)
	}
}

// TraceQueryStart does nothing. A tracer of connections must have it.
func (r *reach) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd does nothing, either.
func (r *reach) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
