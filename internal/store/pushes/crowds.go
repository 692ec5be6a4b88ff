package pushes

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// crowds remembers the recipients that have many bookings, and caches the bookings of a few of them, because reading a
// hundred thousand takes a tenth of a second.
//
// A cached view is used under the recipient's lock, and only if the recipient's version in the table crowds still equals
// the version of the view. Every transaction that adds or removes a booking changes the version.
type crowds struct {
	mu    sync.Mutex
	known map[quota.Recipient]*Crowd
	kept  int // how many bookings all cached views have
}

// Crowd is a recipient that has many bookings. The zero value has no cached view.
type Crowd struct {
	until   time.Time // when the recipient is forgotten
	view    quota.View
	version uuid.UUID // Nil: no view is cached
	kinds   bool      // the view has the kinds of bookings
}

const (
	crowdTime    = 10 * time.Minute
	mostCrowds   = 10_000
	mostKept     = 400_000 // bookings: about 20 MB
	crowdsAtOnce = 4       // with more crowded recipients, a transaction uses and fills no cache
)

// knows reports whether a recipient is known to have many bookings.
func (s *crowds) knows(r quota.Recipient) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[r]
	return c != nil && time.Now().Before(c.until)
}

// Put remembers a recipient as crowded, and caches its view if there is room.
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

// drop forgets a recipient. The caller holds the lock.
func (s *crowds) drop(r quota.Recipient) {
	if c := s.known[r]; c != nil {
		s.kept -= c.view.Len()
		delete(s.known, r)
	}
}

// take removes a recipient's view from the cache, and returns it if it has this version. The caller may change it.
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

// HeldCrowds holds the crowded recipients of a transaction, to cache their bookings after the commit.
type HeldCrowds struct {
	spans    []int // indexes of the read's spans
	versions map[int64]uuid.UUID
	changed  map[int64]bool // other transactions have changed the version since it was read
}

// Whole removes the limit from the read's spans of crowded recipients, and returns the indexes of these spans.
func (s *crowds) Whole(r *BookingRead) (crowded []int) {
	for i := range r.spans {
		if sp := &r.spans[i]; s.knows(sp.recipient) {
			sp.most = 0
			crowded = append(crowded, i)
		}
	}
	return crowded
}

// prepare prepares a read that has up to crowdsAtOnce crowded recipients: it begins the transaction, takes the locks, and
// fills the spans from the cache, or widens them so that all bookings are read and can be cached. With more of them, it
// only removes the limits of their spans. It returns nil then, and without crowded recipients.
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

// changedSQL changes the versions of recipients, so that no process uses its cached views of them, and returns the
// versions before and after.
const changedSQL = `
	WITH old AS MATERIALIZED (
		SELECT recipient_key, version FROM crowds WHERE recipient_key = ANY ($1::bigint[]) ORDER BY recipient_key FOR UPDATE
	)
	UPDATE crowds c SET version = gen_random_uuid() FROM old WHERE c.recipient_key = old.recipient_key
	RETURNING c.recipient_key, old.version, c.version`

// RenewCrowdsSQL changes the versions of crowded recipients in a statement that removes bookings. The list of recipient keys
// follows it.
const RenewCrowdsSQL = ` UPDATE crowds SET version = gen_random_uuid() WHERE recipient_key IN `

// QueueChanged adds a statement to the transaction's batch that changes the versions of the granted pushes' recipients. h
// may be nil.
func (h *HeldCrowds) QueueChanged(b *pgx.Batch, granted []*booking.Decision) {
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

// keep caches the bookings of the crowded recipients after the commit. It forgets a recipient that no longer has many.
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
