package suppressions

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/suppression"
)

// canceledSQL cancels waiting pushes, unless they have changed since they were read.
var canceledSQL = attempts.OverSQL(push.Canceled, `'`+suppression.Failed+`'`)

const (
	// addressedSQL reads the waiting pushes with an address of their own. No push that waits has a send time before the tenant's earliest
	// in live: with that, Postgres searches few partitions.
	addressedSQL = `
	SELECT p.recipient_key, p.send_at, p.id, p.plan FROM pushes p
	WHERE p.address_key = ANY ($1::bigint[]) AND p.tenant_id = $2 AND p.status = 'scheduled' AND NOT p.freed
		AND p.send_at >= (SELECT l.send_at FROM live l WHERE l.tenant_id = $2 ORDER BY l.send_at AT TIME ZONE 'UTC' LIMIT 1)`

	// peopleSQL reads the described recipients with the addresses.
	peopleSQL = `SELECT r.recipient_key, r.recipient, r.address_keys FROM recipients r WHERE r.tenant_id = $2 AND r.address_keys && $1::bigint[]`
)

// waiting has the waiting pushes to suppressed addresses.
type waiting struct {
	*Store
	tenant    uuid.UUID
	channels  map[int64]string // of the entries, by the key of their address
	addressed []pushes.LiveRow // that have the address themselves
	people    map[person]bool  // the recipients, and the channels, of the others
	keys      []int64          // of these recipients
}

// person is a recipient who has a suppressed address on a channel.
type person struct{ recipient, channel string }

// queue adds the reads to a batch. A GIN index needs bitmap scans.
func (w *waiting) queue(b *pgx.Batch, keys []int64) {
	b.Queue(addressedSQL, keys, w.tenant).Query(pushes.ReadLiveRows(&w.addressed))
	b.Queue(`SET LOCAL enable_bitmapscan = on`)
	b.Queue(peopleSQL, keys, w.tenant).Query(func(rows pgx.Rows) error {
		var (
			key       int64
			recipient string
			addresses []int64
		)
		_, err := pgx.ForEachRow(rows, []any{&key, &recipient, &addresses}, func() error {
			w.keys = append(w.keys, key)
			for _, address := range addresses {
				if channel, is := w.channels[address]; is {
					w.people[person{recipient, channel}] = true
				}
			}
			return nil
		})
		return err
	})
}

// cancel cancels the pushes, and counts them. It reports whether there may be more.
func (w *waiting) cancel(ctx context.Context, c *pgxpool.Conn, count *booking.Canceled) (more bool, err error) {
	counted := func(_ string, l pushes.LiveRow) { count.Cancel(l.SendAt) }
	more, err = w.pushes.CancelSome(ctx, c, canceledSQL, w.addressed, func(p pushes.Waiting) bool { return p.Addressed }, counted)
	if err != nil || more || len(w.keys) == 0 {
		return more, err
	}
	var booked []pushes.LiveRow
	b := &pgx.Batch{}
	w.pushes.QueueWaiting(b, w.tenant, w.keys, &booked)
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return false, err
	}
	return w.pushes.CancelSome(ctx, c, canceledSQL, booked, func(p pushes.Waiting) bool { return !p.Addressed && w.people[person{p.Recipient, p.Kind.Channel}] }, counted)
}
