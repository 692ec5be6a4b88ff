package pushes

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// How many bookings of one recipient a transaction reads: a transaction that tenants share, and a transaction of one
// tenant. A recipient with more is crowded.
const (
	sharedRows = 128
	OwnRows    = booking.Crowd
)

// spansAtOnce is the number of recipients in one portion, so that an order for a thousand recipients with a thousand
// bookings each never holds all of them in memory.
const spansAtOnce = 128

// BookingRead reads what a decision about a group of orders needs: the bookings around their send times, one span for
// each recipient; the existing pushes with the drafts' ids; and the results of their Idempotency-Keys. It reads the
// bookings in portions, each when the decider asks for its first recipient.
type BookingRead struct {
	Locks    []int64
	at       map[quota.Recipient]int // index in spans
	spans    []span                  // in the order of the drafts
	ids      []Ref
	requests []uuid.UUID
	reach    time.Duration // the longest of the policies
	Pushes   pg.Parts
	Terms    terms.Read

	configured []string // channels of the operator; nil: not known
	People     terms.People
	suppressed terms.Suppressed

	Begun     bool              // the transaction has begun, and holds the locks
	lockReads int               // how many results list keys for locked
	locked    []int64           // keys that other transactions have locked
	Crowded   []quota.Recipient // have more bookings than were read

	existing []attempted // pushes with one of the ids

	Results pgx.BatchResults
	asked   []portionRead
	read    int // how many spans
	err     error
}

// portionRead is a queued query for a portion of the spans.
type portionRead struct {
	spans int
	reads []spansIn
}

// NewBookingRead returns a read for some orders, of up to most bookings of each recipient; 0: all. rerun means that an
// earlier run of the transaction may have booked the drafts.
func (s *Store) NewBookingRead(orders []booking.Order, rerun bool, most int) *BookingRead {
	drafts := 0
	for i := range orders {
		drafts += len(orders[i].Drafts)
	}
	r := &BookingRead{
		at: make(map[quota.Recipient]int, drafts), spans: make([]span, 0, drafts), Locks: make([]int64, 0, drafts),
		Pushes: s.db.Layouts.Pushes(), configured: s.db.Cfg.Channels,
	}
	for i := range orders {
		o := &orders[i]
		known := r.Terms.Use(&s.terms.Known, o.Tenant())
		terms := known.Or(o.Policy)
		r.reach = max(r.reach, terms.Reach())
		for i := range o.Drafts {
			d := &o.Drafts[i]
			if r.add(d.Recipient(), o.Around(terms, d), most, !terms.Plain()) && known.Described {
				r.People.Add(o.Tenant(), keyOf(d))
				if known.Suppresses {
					r.suppressed.Recipient(o.Tenant(), keyOf(d))
				}
			}
			if known.Suppresses && d.Push.To != "" {
				r.suppressed.Address(o.Tenant(), d.Push.Channel, d.Push.To)
			}
			if rerun || o.MayExist { // the push may be in another week than its id names: deferred, or moved since
				r.ids = append(r.ids, RefOf(d.Push.ID, keyOf(d)))
			}
			if d.Retried != nil {
				r.ids = append(r.ids, RefOf(d.Push.Retry.First, keyOf(d))) // of the same recipient
			}
			r.addRequest(d.Push.IdempotencyID)
		}
	}
	for _, sp := range r.spans {
		r.Locks = append(r.Locks, sp.key)
	}
	slices.Sort(r.Locks)
	r.Locks = slices.Compact(r.Locks)
	return r
}

// add adds a recipient's span, or widens it. It reports whether the recipient is new.
func (r *BookingRead) add(recipient quota.Recipient, v quota.View, most int, kinds bool) bool {
	i, known := r.at[recipient]
	if !known {
		r.at[recipient] = len(r.spans)
		r.spans = append(r.spans, span{recipient: recipient, key: push.RecipientKey(recipient.Tenant, recipient.ID), view: v, most: most, kinds: kinds, uses: 1})
		return true
	}
	r.spans[i].uses++
	r.spans[i].view.Widen(v.From, v.Until)
	return false
}

// addRequest adds an Idempotency-Key to the read, with a lock of its own. All members of a batch have the same key.
func (r *BookingRead) addRequest(id uuid.UUID) {
	if n := len(r.requests); id != uuid.Nil && (n == 0 || r.requests[n-1] != id) {
		r.requests = append(r.requests, id)
		r.Locks = append(r.Locks, requestLock(id))
	}
}

// portion returns how many spans from index from on are read together. A span without a limit is read alone.
func (r *BookingRead) portion(from int) int {
	n := 0
	for from+n < len(r.spans) && n < spansAtOnce && (r.spans[from+n].most > 0 || r.spans[from+n].known) {
		n++
	}
	return max(n, 1)
}

// LockLiveSQL locks the row of a push in live. It finds the row by the send time, which cannot change while the caller
// holds the recipient's lock.
const LockLiveSQL = `SELECT FROM live WHERE shard = ANY ($4::smallint[]) AND recipient_key = $1 AND send_at = $2 AND push_id = $3 FOR UPDATE`

// Snapshot begins a transaction, takes the locks and queries everything else, in one exchange. If there are ids, it first
// reads the pushes that have them; with change, it locks those as well. Unless it fails, the caller must close the read.
func (r *BookingRead) Snapshot(ctx context.Context, s *Store, c *pgxpool.Conn, locks pg.Locking, change bool) (booking.Snapshot, error) {
	if len(r.ids) > 0 {
		if err := r.find(ctx, s, c, locks, change); err != nil {
			return booking.Snapshot{}, err
		}
	}
	b := &pgx.Batch{}
	if !r.Begun {
		b.Queue(`begin isolation level read committed`)
		r.lockReads = len(locks.Queue(b, r.Locks))
	}
	b.Queue(`SELECT clock_timestamp()`)
	r.Terms.Queue(b)
	if len(r.People.Keys) > 0 {
		r.People.Queue(s.terms, b)
	}
	if r.suppressed.Any() {
		r.suppressed.QueueBooking(b)
		r.suppressed.Queue(b)
	}
	if len(r.requests) > 0 {
		b.Queue(keyedTablesSQL(&s.db.Layouts), r.requests)
	}
	if !r.complete() {
		b.Queue(pg.CompleteSQL, r.Pushes.Names())
	}
	for from := 0; from < len(r.spans); {
		n := r.portion(from)
		spans := r.spans[from : from+n]
		reads := tablesOf(spans, r.Pushes)
		for _, read := range reads {
			read.queue(b, spans)
		}
		r.asked = append(r.asked, portionRead{n, reads})
		from += n
	}
	r.Results = c.SendBatch(ctx, b)
	snapshot, err := r.snapshot()
	if err != nil {
		_ = r.Results.Close()
	}
	return snapshot, err
}

// find begins the transaction, takes the locks, and reads the pushes with the ids.
func (r *BookingRead) find(ctx context.Context, s *Store, c *pgxpool.Conn, locks pg.Locking, change bool) (err error) {
	if !r.Begun {
		b := &pgx.Batch{}
		b.Queue(`begin isolation level read committed`)
		for _, asked := range locks.Queue(b, r.Locks) {
			asked.Query(func(rows pgx.Rows) error {
				r.locked, err = pgx.AppendRows(r.locked, rows, pgx.RowTo[int64])
				return err
			})
		}
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		r.Begun = true
	}
	if r.existing, err = s.ReadPushes(ctx, c, r.ids); err != nil || !change {
		return err
	}
	for _, p := range r.existing {
		key := push.RecipientKey(p.Tenant, p.Recipient)
		if _, err := c.Exec(ctx, LockLiveSQL, key, p.SendAt, p.ID, pg.ShardsOf(key)); err != nil {
			return err
		}
	}
	r.existing, err = s.ReadPushes(ctx, c, r.ids)
	r.existing = slices.DeleteFunc(r.existing, func(p attempted) bool { return erased(p.Push) })
	return err
}

// complete reports whether this process knows all tables that may hold bookings of the spans.
func (r *BookingRead) complete() bool { return coverAll(r.Pushes, r.spans) }

// snapshot reads everything except the bookings.
func (r *BookingRead) snapshot() (s booking.Snapshot, err error) {
	s.Views, s.Own = r, r.Terms.OwnChannel
	for _, p := range r.existing {
		s.Existing = append(s.Existing, p.Push)
	}
	if !r.Begun {
		if _, err := r.Results.Exec(); err != nil {
			return s, err
		}
		for range r.lockReads {
			rows, _ := r.Results.Query()
			if r.locked, err = pgx.AppendRows(r.locked, rows, pgx.RowTo[int64]); err != nil {
				return s, err
			}
		}
	}
	if err := r.Results.QueryRow().Scan(&s.Now); err != nil {
		return s, err
	}
	if s.Terms, s.People, err = r.standings(); err != nil {
		return s, err
	}
	s.Suppressed = r.suppressed.Found
	if len(r.requests) > 0 {
		rows, _ := r.Results.Query()
		if s.Keyed, err = pgx.CollectRows(rows, collectKeyed); err != nil {
			return s, err
		}
	}
	if !r.complete() {
		var complete bool
		if err := r.Results.QueryRow().Scan(&complete); err != nil {
			return s, err
		}
		if !complete {
			return s, pg.ErrStale
		}
	}
	return s, nil
}

// standings reads the terms and the recipients' descriptions.
func (r *BookingRead) standings() (map[uuid.UUID]booking.Terms, map[quota.Recipient]booking.Person, error) {
	rows, _ := r.Results.Query()
	if err := r.Terms.Collect(rows); err != nil {
		return nil, nil, err
	}
	if len(r.People.Keys) > 0 {
		rows, _ := r.Results.Query()
		if err := r.People.Collect(rows); err != nil {
			return nil, nil, err
		}
	}
	if r.suppressed.Any() {
		if _, err := r.Results.Exec(); err != nil {
			return nil, nil, err
		}
		rows, _ := r.Results.Query()
		if err := r.suppressed.Collect(rows); err != nil {
			return nil, nil, err
		}
	}
	for who := range r.at {
		if r.Terms.Used[who.Tenant].Deleting {
			if r.People.Found == nil {
				r.People.Found = map[quota.Recipient]booking.Person{}
			}
			r.People.Found[who] = r.Terms.Person(who, &r.People)
		}
	}
	return r.Terms.Own(), r.People.Found, r.Terms.Check()
}
