package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// claimState is what is known of the recipients that a group of claims is for.
type claimState struct {
	now        time.Time
	recipients map[int64]*booking.ClaimState
}

// longestLease is how long other workers' leases may be, or those of this one before its settings were changed: an
// attempt counts from its end, but is found by its beginning.
const longestLease = time.Hour

// claimRead is what a group of claims has to read: for each recipient, what its first order asks for.
type claimRead struct {
	keys     []int64
	channels []string      // one for each key
	without  []string      // of any order
	reach    time.Duration // how far back sends count
}

func newClaimRead(orders []booking.ClaimOrder, first map[int64]int) (q claimRead) {
	q.keys = slices.Sorted(maps.Keys(first))
	for _, key := range q.keys {
		q.channels = append(q.channels, orders[first[key]].Channel)
	}
	q.without = []string{}
	for _, o := range orders {
		q.reach = max(q.reach, o.Policy.Reach()+max(o.Lease, longestLease))
		for _, c := range o.Without {
			if !slices.Contains(q.without, c) {
				q.without = append(q.without, c)
			}
		}
	}
	return q
}

// readClaims takes the recipients' locks and reads, in later statements, what is due, what is under way and what was
// sent. It should not wait for a lock: other recipients' pushes would have to wait as well.
func (s *Store) readClaims(ctx context.Context, c *pgxpool.Conn, locks string, orders []booking.ClaimOrder, first map[int64]int) (*claimState, error) {
	q := newClaimRead(orders, first)
	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed`)
	b.Queue(locks, q.keys)
	b.Queue(`
		SELECT `+pushColumns+`, k.k, l.token, l.next_at, l.allowed
		FROM unnest($1::bigint[], $3::text[]) AS k (k, channel)
		CROSS JOIN LATERAL (
			SELECT *, CASE WHEN k.channel = '' THEN channel <> ALL ($4::text[]) ELSE channel = k.channel END AS allowed FROM (
				SELECT * FROM live
				WHERE recipient_key = k.k AND send_at <= statement_timestamp() + $2
				OFFSET 0 -- keeps the next line from choosing another index
			) l
			WHERE token IS NOT NULL OR next_at <= statement_timestamp() + $2
				AND ($5::text[] IS NULL OR channel = ANY ($5) OR channel = k.channel)
			ORDER BY token, allowed DESC, greatest(next_at, statement_timestamp()), send_at, push_id -- what is under way first
			LIMIT 3
		) l
		CROSS JOIN LATERAL (SELECT * FROM pushes WHERE id = l.push_id OFFSET 0) p`, q.keys, booking.Patience, q.channels, q.without, s.cfg.Channels)
	b.Queue(`
		SELECT k.k, s.tenant_id, s.recipient, s.push_id, coalesce(s.handed_at, s.ended_at) AS at
		FROM unnest($1::bigint[]) AS k
		CROSS JOIN LATERAL (
			SELECT tenant_id, recipient, push_id, handed_at, ended_at FROM sends
			WHERE recipient_key = k.k AND started_at > statement_timestamp() - $2::interval AND outcome IN ('delivered', 'unknown')
			OFFSET 0
		) s
		ORDER BY k.k, at`, q.keys, q.reach)
	b.Queue(`SELECT clock_timestamp()`) // last: an attempt that was seen to have ended did so before the next begins
	res := c.SendBatch(ctx, b)
	found, err := readClaimState(res, len(q.keys))
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	return found, err
}

func readClaimState(res pgx.BatchResults, recipients int) (*claimState, error) {
	found := &claimState{recipients: make(map[int64]*booking.ClaimState, recipients)}
	if _, err := res.Exec(); err != nil {
		return nil, err
	}
	for _, read := range []func(pgx.CollectableRow) error{found.readLocked, found.readLive, found.readSend} {
		rows, _ := res.Query()
		for rows.Next() {
			if err := read(rows); err != nil {
				rows.Close()
				return nil, err
			}
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return found, res.QueryRow().Scan(&found.now)
}

func (s *claimState) readLocked(row pgx.CollectableRow) error {
	var key int64
	err := row.Scan(&key)
	s.of(key).Locked = true
	return err
}

func (s *claimState) readLive(row pgx.CollectableRow) error {
	var (
		key     int64
		token   uuid.UUID
		next    time.Time
		allowed bool
	)
	p, err := scanPush(row, &key, (*zeronull.UUID)(&token), &next, &allowed)
	switch d := s.of(key); {
	case token != uuid.Nil:
		d.InFlight = append(d.InFlight, booking.InFlight{Push: p, Token: token, LeaseUntil: next})
	case allowed && d.Due.ID == uuid.Nil:
		d.Due = p
	default:
		d.More = true
	}
	return err
}

func (s *claimState) readSend(row pgx.CollectableRow) error {
	var (
		key       int64
		tenant    uuid.UUID
		recipient string
		b         quota.Booking
	)
	err := row.Scan(&key, (*[16]byte)(&tenant), &recipient, (*[16]byte)(&b.ID), &b.At)
	if d := s.of(key); d.Due.Tenant == tenant && d.Due.Recipient == recipient {
		d.Sends = append(d.Sends, b)
	}
	return err
}

func (s *claimState) of(key int64) *booking.ClaimState {
	d := s.recipients[key]
	if d == nil {
		d = &booking.ClaimState{}
		s.recipients[key] = d
	}
	return d
}
