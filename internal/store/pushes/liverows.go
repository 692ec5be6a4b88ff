package pushes

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// LiveRows holds rows of live as they were read, one array per column.
type LiveRows struct {
	Keys   []int64
	SendAt []time.Time
	IDs    []uuid.UUID
	Plans  []int64
	Times  []time.Time // the time to write: when the lease ends, or when to try next

	HeldBy               []string // see [push.Hold]
	HeldSince, HeldUntil []time.Time
}

// Add appends a row.
func (r *LiveRows) Add(l LiveRow) {
	r.Keys, r.SendAt, r.IDs = append(r.Keys, l.Key), append(r.SendAt, l.SendAt), append(r.IDs, l.ID)
	r.Plans, r.Times = append(r.Plans, l.Plan), append(r.Times, l.Time)
	r.HeldBy = append(r.HeldBy, l.Held.By)
	r.HeldSince, r.HeldUntil = append(r.HeldSince, l.Held.Since), append(r.HeldUntil, l.Held.Until)
}

// LiveRow is one row of [LiveRows].
type LiveRow struct {
	Key    int64
	SendAt time.Time
	ID     uuid.UUID
	Plan   int64
	Time   time.Time
	Held   push.Hold
}

// ReadLiveRows returns a function that reads rows of keys, send times, ids and plans into to.
func ReadLiveRows(to *[]LiveRow) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*to, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l LiveRow, err error) {
			return l, row.Scan(&l.Key, &l.SendAt, &l.ID, &l.Plan)
		})
		return err
	}
}

// Some returns the keys, send times, ids and plans of the rows with these indexes.
func (r *LiveRows) Some(at []int) *LiveRows {
	part := &LiveRows{}
	for _, i := range at {
		part.Add(LiveRow{Key: r.Keys[i], SendAt: r.SendAt[i], ID: r.IDs[i], Plan: r.Plans[i]})
	}
	return part
}
