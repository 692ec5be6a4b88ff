package store

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// How many bookings of one recipient a transaction reads: one that tenants share, and one that a tenant has for itself.
// A recipient with more is crowded.
const (
	sharedRows = 128
	ownRows    = booking.Crowd
)

// portion is how many recipients' bookings are read together. An order for a thousand recipients with a thousand
// bookings each never has all of them in memory.
const portion = 128

// bookingRead reads what is decided by about a group of orders: the bookings around their send times, one span for each
// recipient; the pushes that have one of their ids; and what their Idempotency-Keys have made. It reads the bookings in
// portions, each when the first of its recipients is needed.
type bookingRead struct {
	locks    []int64
	at       map[quota.Recipient]int // in spans
	spans    []span                  // in the order in which the drafts need them
	ids      []sought
	requests []uuid.UUID
	reach    time.Duration // of the policies
	pushes   parts
	terms    termsRead
	people   peopleRead

	begun     bool              // the transaction has begun, and has the locks
	lockReads int               // results that tell of locks
	locked    []int64           // keys whose locks other transactions have
	crowded   []quota.Recipient // of whom not all bookings were read

	existing []attempted // that have one of the ids

	look func(who quota.Recipient, view quota.View) // is shown each view when it is asked for; nil: nobody looks

	results pgx.BatchResults
	asked   []portionRead
	read    int // spans
	err     error
}

// portionRead is a portion that was asked for.
type portionRead struct {
	spans int
	reads []spansIn
}

// newBookingRead reads at most so many bookings of each recipient; 0: all.
func (s *Store) newBookingRead(orders []order, rerun bool, most int) *bookingRead {
	r := &bookingRead{at: map[quota.Recipient]int{}, pushes: s.layouts.pushes()}
	for _, o := range orders {
		known := r.terms.use(&s.terms, o.Tenant())
		terms := known.or(o.Policy)
		r.reach = max(r.reach, terms.Reach())
		for _, d := range o.Drafts {
			if r.add(d.Recipient(), o.Around(terms, d), most, !terms.Plain()) && known.described {
				r.people.add(o.Tenant(), keyOf(d))
			}
			if rerun || o.mayExist { // perhaps deferred to another week than its id names, or moved since
				r.ids = append(r.ids, soughtOf(d.Push.ID, keyOf(d)))
			}
			if d.Retried != nil {
				r.ids = append(r.ids, soughtOf(d.Push.Retry.First, keyOf(d))) // of the same recipient
			}
			r.addRequest(d.Push.IdempotencyID)
		}
	}
	for _, sp := range r.spans {
		r.locks = append(r.locks, sp.key)
	}
	slices.Sort(r.locks)
	r.locks = slices.Compact(r.locks)
	return r
}

// add adds a recipient's span, or widens it. It reports whether it is the first of this recipient.
func (r *bookingRead) add(recipient quota.Recipient, v quota.View, most int, kinds bool) bool {
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

// addRequest asks for what an Idempotency-Key has made before, under a lock of its own. The members of a batch have the
// same key.
func (r *bookingRead) addRequest(id uuid.UUID) {
	if n := len(r.requests); id != uuid.Nil && (n == 0 || r.requests[n-1] != id) {
		r.requests = append(r.requests, id)
		r.locks = append(r.locks, requestLock(id))
	}
}

func requestLock(id uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// lockLiveSQL locks the row in live of a push. Under the lock of its recipient a push keeps its send time, by which the
// row is found.
const lockLiveSQL = `SELECT FROM live WHERE shard = ANY ($4::smallint[]) AND recipient_key = $1 AND send_at = $2 AND push_id = $3 FOR UPDATE`

// start begins a transaction, takes the locks and asks for everything else, in one exchange. If there are ids, the pushes
// that have them are looked for before; if they are to be changed, they are locked as well. The read must be closed.
func (r *bookingRead) start(ctx context.Context, s *Store, c *pgxpool.Conn, locks locking, change bool) (*booking.Decider, error) {
	if len(r.ids) > 0 {
		if err := r.find(ctx, s, c, locks, change); err != nil {
			return nil, err
		}
	}
	b := &pgx.Batch{}
	if !r.begun {
		b.Queue(`begin isolation level read committed`)
		r.lockReads = len(locks.queue(b, r.locks))
	}
	b.Queue(`SELECT clock_timestamp()`)
	r.terms.queue(b)
	if len(r.people.keys) > 0 {
		r.people.queue(s, b)
	}
	if len(r.requests) > 0 {
		b.Queue(keyedTablesSQL(&s.layouts), r.requests)
	}
	if !r.complete() {
		b.Queue(completeSQL, r.pushes.names())
	}
	for from := 0; from < len(r.spans); {
		n := r.portion(from)
		spans := r.spans[from : from+n]
		reads := tablesOf(spans, r.pushes)
		for _, read := range reads {
			read.queue(b, spans)
		}
		r.asked = append(r.asked, portionRead{n, reads})
		from += n
	}
	r.results = c.SendBatch(ctx, b)
	snapshot, err := r.snapshot()
	if err != nil {
		_ = r.results.Close()
		return nil, err
	}
	return booking.NewDecider(snapshot), nil
}

// find begins the transaction, takes the locks, and reads the pushes that have one of the ids.
func (r *bookingRead) find(ctx context.Context, s *Store, c *pgxpool.Conn, locks locking, change bool) (err error) {
	if !r.begun {
		b := &pgx.Batch{}
		b.Queue(`begin isolation level read committed`)
		for _, asked := range locks.queue(b, r.locks) {
			asked.Query(func(rows pgx.Rows) error {
				r.locked, err = pgx.AppendRows(r.locked, rows, pgx.RowTo[int64])
				return err
			})
		}
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		r.begun = true
	}
	if r.existing, err = s.readPushes(ctx, c, r.ids); err != nil || !change {
		return err
	}
	for _, p := range r.existing {
		key := push.RecipientKey(p.Tenant, p.Recipient)
		if _, err := c.Exec(ctx, lockLiveSQL, key, p.SendAt, p.ID, shardsOf(key)); err != nil {
			return err
		}
	}
	r.existing, err = s.readPushes(ctx, c, r.ids)
	r.existing = slices.DeleteFunc(r.existing, func(p attempted) bool { return erased(p.Push) })
	return err
}

// complete reports whether all tables that may have bookings are known.
func (r *bookingRead) complete() bool { return coverAll(r.pushes, r.spans) }

// snapshot reads all but the bookings.
func (r *bookingRead) snapshot() (s booking.Snapshot, err error) {
	s.Views = r
	for _, p := range r.existing {
		s.Existing = append(s.Existing, p.Push)
	}
	if !r.begun {
		if _, err := r.results.Exec(); err != nil {
			return s, err
		}
		for range r.lockReads {
			rows, _ := r.results.Query()
			if r.locked, err = pgx.AppendRows(r.locked, rows, pgx.RowTo[int64]); err != nil {
				return s, err
			}
		}
	}
	if err := r.results.QueryRow().Scan(&s.Now); err != nil {
		return s, err
	}
	if s.Terms, s.People, err = r.standings(); err != nil {
		return s, err
	}
	if len(r.requests) > 0 {
		rows, _ := r.results.Query()
		if s.Keyed, err = pgx.CollectRows(rows, collectKeyed); err != nil {
			return s, err
		}
	}
	if !r.complete() {
		var complete bool
		if err := r.results.QueryRow().Scan(&complete); err != nil {
			return s, err
		}
		if !complete {
			return s, errStale
		}
	}
	return s, nil
}

// standings reads the terms and what is known of the recipients.
func (r *bookingRead) standings() (map[uuid.UUID]booking.Terms, map[quota.Recipient]booking.Person, error) {
	rows, _ := r.results.Query()
	if err := r.terms.collect(rows); err != nil {
		return nil, nil, err
	}
	if len(r.people.keys) > 0 {
		rows, _ := r.results.Query()
		if err := r.people.collect(rows); err != nil {
			return nil, nil, err
		}
	}
	for who := range r.at {
		if r.terms.used[who.Tenant].deleting {
			if r.people.found == nil {
				r.people.found = map[quota.Recipient]booking.Person{}
			}
			r.people.found[who] = r.terms.person(who, &r.people)
		}
	}
	return r.terms.own(), r.people.found, r.terms.check()
}
