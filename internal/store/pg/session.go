package pg

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tries counts the runs of a transaction, and decides after each whether to run it again.
type Tries struct {
	db             *DB
	tries, changes int
}

// Tries returns the tries of a new transaction.
func (s *DB) Tries() *Tries { return &Tries{db: s} }

// Again reports whether to run the transaction again from its start after an error. First it removes the cause of the
// error, or waits. Otherwise it returns the error, classified.
func (t *Tries) Again(ctx context.Context, err error) (bool, error) {
	made, parted, err := t.db.MakePart(ctx, err)
	if made > 0 {
		return true, nil // the rows of one transaction may need several new partitions
	}
	if old, ok := errors.AsType[outdated](err); ok && t.tries < 4 {
		if err = old.Reload(ctx); err == nil {
			t.tries++
			return true, nil
		}
	}
	changed := Repartitioned(err) && t.changes < 25
	if err == nil || t.tries == 4 && !changed || !t.db.Layouts.Mend(err) && !parted && !Again(err) {
		return false, Classify(err)
	}
	wait := 20 * time.Millisecond
	if changed {
		t.changes++ // many partitions may be dropped in quick succession
	} else {
		wait <<= 2 * t.tries
		t.tries++
	}
	select {
	case <-ctx.Done():
		return false, Classify(err)
	case <-time.After(wait):
		return true, nil
	}
}

// Session is a connection for one run of a transaction whose steps the caller takes one by one.
type Session struct {
	*pgxpool.Conn
	pool  *pgxpool.Pool
	leave func(err error)
}

// Session acquires a connection for changes.
func (s *DB) Session(ctx context.Context) (*Session, error) {
	return s.session(ctx, s.Pool, func(error) {})
}

// ReadSession acquires a connection for a request of one tenant that only reads. It limits the tenant to a share of the
// connections.
func (s *DB) ReadSession(ctx context.Context, tenant uuid.UUID) (*Session, error) {
	leave, err := s.enter(ctx, s.reads, tenant)
	if err != nil {
		return nil, err
	}
	x, err := s.session(ctx, s.ReadPool, leave)
	if err != nil {
		leave(Classify(err))
	}
	return x, err
}

// session acquires a connection of a pool, with layouts that are known to be in force.
func (s *DB) session(ctx context.Context, pool *pgxpool.Pool, leave func(error)) (*Session, error) {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Layouts.Fresh(ctx, c); err != nil {
		release(ctx, pool, c, err)
		return nil, err
	}
	return &Session{c, pool, leave}, nil
}

// End rolls back a transaction that is still open, and releases the connection. err is the error of the run; nil: it
// succeeded.
func (x *Session) End(ctx context.Context, err error) {
	release(ctx, x.pool, x.Conn, err)
	x.leave(Classify(err))
}
