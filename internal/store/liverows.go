package store

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// liveRows are rows of live as they were read, one array per column.
type liveRows struct {
	keys   []int64
	sendAt []time.Time
	ids    []uuid.UUID
	plans  []int64
	times  []time.Time // what is to be written: when the lease ends, or when to try next

	heldBy               []string // see [push.Hold]
	heldSince, heldUntil []time.Time
}

func (r *liveRows) add(l liveRow) {
	r.keys, r.sendAt, r.ids = append(r.keys, l.key), append(r.sendAt, l.sendAt), append(r.ids, l.id)
	r.plans, r.times = append(r.plans, l.plan), append(r.times, l.time)
	r.heldBy = append(r.heldBy, l.held.By)
	r.heldSince, r.heldUntil = append(r.heldSince, l.held.Since), append(r.heldUntil, l.held.Until)
}

type liveRow struct {
	key    int64
	sendAt time.Time
	id     uuid.UUID
	plan   int64
	time   time.Time
	held   push.Hold
}

// readLiveRows reads keys, send times, ids and plans.
func readLiveRows(to *[]liveRow) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*to, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l liveRow, err error) {
			return l, row.Scan(&l.key, &l.sendAt, &l.id, &l.plan)
		})
		return err
	}
}
