package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// row is a push in Postgres.
type row struct {
	ID, Recipient, Channel, Status, LastError   string
	SendAt, NextAt, ExpiresAt, Created, Updated time.Time
	Attempts                                    int
	Possibly                                    bool
}

// send is an attempt in Postgres.
type send struct {
	Push, Recipient, Outcome, Error string
	Attempt                         int
	Started, LeaseUntil             time.Time
	Handed, Ended                   *time.Time
}

// lost reports whether the attempt had been given up for lost.
func (s send) lost() bool { return s.Ended != nil && s.Ended.Equal(s.LeaseUntil) }

// facts are all that is known when everything has settled.
type facts struct {
	ops      []op
	rows     map[string]row
	sends    map[string][]send // by push, in order
	arrivals []arrival
}

func (b *bundle) facts(ctx context.Context) (*facts, error) {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	f := &facts{ops: b.history.all(), rows: map[string]row{}, sends: map[string][]send{}}
	rows, _ := conn.Query(ctx, `SELECT id::text, recipient, channel, status, last_error, send_at, next_at, expires_at, created_at, updated_at, attempts, possibly_delivered FROM pushes`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		f.rows[r.ID] = r
	}
	rows, _ = conn.Query(ctx, `SELECT push_id::text, recipient, coalesce(outcome, ''), error, attempt, started_at, lease_until, handed_at, ended_at FROM sends ORDER BY push_id, attempt`)
	sends, err := pgx.CollectRows(rows, pgx.RowToStructByPos[send])
	if err != nil {
		return nil, err
	}
	for _, s := range sends {
		f.sends[s.Push] = append(f.sends[s.Push], s)
	}
	f.arrivals, err = b.provider.arrivals()
	return f, err
}

// settle waits until every push that is due before a time has ended.
func (b *bundle) settle(ctx context.Context, before time.Time, patience time.Duration) (left int, err error) {
	conn, err := pgx.Connect(ctx, b.database)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	for deadline := time.Now().Add(patience); ; {
		err := conn.QueryRow(ctx, `SELECT count(*) FROM pushes WHERE status IN ('scheduled', 'sending') AND send_at < $1`, before).Scan(&left)
		if err != nil || left == 0 || time.Now().After(deadline) {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
