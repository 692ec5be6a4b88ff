package pushes

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// crowds remembers the recipients that have many bookings, and keeps the bookings of a few of them in memory. Reading a
// hundred thousand takes a tenth of a second.
//
// What it keeps is used under the recipient's lock, and only if the recipient's version in the table crowds is still
// the one that was kept with it. Every transaction that adds or removes a booking changes the version.
type crowds struct {
	mu    sync.Mutex
	known map[quota.Recipient]*Crowd
	kept  int // bookings, of all
}

type Crowd struct {
	until   time.Time // when it is forgotten
	view    quota.View
	version uuid.UUID // Nil: no view is kept
	kinds   bool      // the view has them
}

const (
	crowdTime    = 10 * time.Minute
	mostCrowds   = 10_000
	mostKept     = 400_000 // bookings: some 20 MB
	crowdsAtOnce = 4       // in one transaction; of more, no bookings are kept
)

// knows reports whether a recipient is known to have many bookings.
func (s *crowds) knows(r quota.Recipient) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[r]
	return c != nil && time.Now().Before(c.until)
}

// Put remembers a recipient, with its view if there is room for it.
func (s *crowds) Put(r quota.Recipient, c Crowd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(r)
	now := time.Now()
	for other, o := range s.known {
		if !now.Before(o.until) || len(s.known) >= mostCrowds || s.kept+c.view.Len() > mostKept && o.view.Len() > 0 {
			s.drop(other)
		}
	}
	if s.kept+c.view.Len() > mostKept {
		c = Crowd{}
	}
	c.until = now.Add(crowdTime)
	s.known[r] = &c
	s.kept += c.view.Len()
}

// drop forgets a recipient, under the lock.
func (s *crowds) drop(r quota.Recipient) {
	if c := s.known[r]; c != nil {
		s.kept -= c.view.Len()
		delete(s.known, r)
	}
}

// take returns the view of a recipient if it was kept with this version. It is the caller's to change then, and not
// kept any more.
func (s *crowds) take(r quota.Recipient, version uuid.UUID, kinds bool) (v quota.View, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[r]
	if c == nil || c.version == uuid.Nil {
		return v, false
	}
	v, ok = c.view, c.version == version && c.kinds == kinds
	s.kept -= v.Len()
	c.view, c.version = quota.View{}, uuid.Nil
	return v, ok
}

// HeldCrowds are the crowded recipients of a transaction whose bookings are to be kept afterwards.
type HeldCrowds struct {
	spans    []int // of the read
	versions map[int64]uuid.UUID
	changed  map[int64]bool // their versions were changed by others meanwhile
}

// Whole has all bookings of crowded recipients read, and returns which spans are theirs.
func (s *crowds) Whole(r *BookingRead) (crowded []int) {
	for i := range r.spans {
		if sp := &r.spans[i]; s.knows(sp.recipient) {
			sp.most = 0
			crowded = append(crowded, i)
		}
	}
	return crowded
}

// prepare gets the crowded recipients of a read ready: it begins the transaction and takes the locks, and where there
// are only a few of them, has the bookings that are kept used, or all bookings read. Without crowded recipients it does
// nothing.
func (s *crowds) prepare(ctx context.Context, c *pgxpool.Conn, r *BookingRead, locks pg.Locking) (*HeldCrowds, error) {
	held := HeldCrowds{spans: s.Whole(r)}
	if len(held.spans) == 0 || len(held.spans) > crowdsAtOnce {
		return nil, nil
	}
	if err := held.read(ctx, c, r, locks); err != nil {
		return nil, err
	}
	r.Begun = true
	for _, i := range held.spans {
		sp := &r.spans[i]
		sp.keep = true
		v, ok := s.take(sp.recipient, held.versions[sp.key], sp.kinds)
		if sp.known = ok && !v.From.After(sp.view.From) && !v.Until.Before(sp.view.Until); sp.known {
			sp.view = v
			continue
		}
		sp.view.Widen(time.Now().Add(-2*r.reach), booking.EndOfTime)
	}
	return &held, nil
}

// read begins the transaction, takes the locks and reads the versions.
func (h *HeldCrowds) read(ctx context.Context, c *pgxpool.Conn, r *BookingRead, locks pg.Locking) error {
	keys := make([]int64, len(h.spans))
	for n, i := range h.spans {
		keys[n] = r.spans[i].key
	}
	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed`)
	locks.Queue(b, r.Locks)
	b.Queue(`INSERT INTO crowds (recipient_key) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING`, keys)
	h.versions, h.changed = map[int64]uuid.UUID{}, map[int64]bool{}
	b.Queue(`SELECT recipient_key, version FROM crowds WHERE recipient_key = ANY ($1::bigint[])`, keys).Query(func(rows pgx.Rows) error {
		var (
			key     int64
			version uuid.UUID
		)
		_, err := pgx.ForEachRow(rows, []any{&key, &version}, func() error {
			h.versions[key] = version
			return nil
		})
		return err
	})
	return c.SendBatch(ctx, b).Close()
}

// changedSQL changes the versions of recipients, so that no process uses the bookings that it keeps of them, and
// returns the versions before and after.
const changedSQL = `
	WITH old AS MATERIALIZED (
		SELECT recipient_key, version FROM crowds WHERE recipient_key = ANY ($1::bigint[]) ORDER BY recipient_key FOR UPDATE
	)
	UPDATE crowds c SET version = gen_random_uuid() FROM old WHERE c.recipient_key = old.recipient_key
	RETURNING c.recipient_key, old.version, c.version`

// FewerSQL is the end of a statement that takes bookings away: before the list of the recipient keys that it concerns.
const FewerSQL = ` UPDATE crowds SET version = gen_random_uuid() WHERE recipient_key IN `

// QueueChanged says in the transaction that the recipients of the granted pushes have other bookings now.
func (h *HeldCrowds) QueueChanged(b *pgx.Batch, granted []booking.Grant) {
	keys := make([]int64, len(granted))
	for i := range granted {
		p := &granted[i].Push
		keys[i] = push.RecipientKey(p.Tenant, p.Recipient)
	}
	slices.Sort(keys)
	queued := b.Queue(changedSQL, slices.Compact(keys))
	if h == nil {
		return
	}
	queued.Query(func(rows pgx.Rows) error {
		var (
			key           int64
			before, after uuid.UUID
		)
		_, err := pgx.ForEachRow(rows, []any{&key, &before, &after}, func() error {
			h.changed[key] = before != h.versions[key]
			h.versions[key] = after
			return nil
		})
		return err
	})
}

// keep keeps the bookings of the crowded recipients, after the transaction was committed. One that has not so many any
// more is forgotten.
func (s *crowds) keep(h *HeldCrowds, r *BookingRead) {
	if h == nil {
		return
	}
	for _, i := range h.spans {
		sp := &r.spans[i]
		switch view := sp.view; {
		case view.Len() < OwnRows/2:
			s.mu.Lock()
			s.drop(sp.recipient)
			s.mu.Unlock()
		case h.changed[sp.key]:
			s.Put(sp.recipient, Crowd{})
		default:
			s.Put(sp.recipient, Crowd{view: view, version: h.versions[sp.key], kinds: sp.kinds})
		}
	}
}
