package attempts

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// claimState holds what a group of claims has read of its recipients.
type claimState struct {
	now        time.Time
	recipients map[int64]*booking.ClaimState
}

// longestLease bounds the leases of other workers, and of this one under earlier settings. An attempt counts from its end
// but is found by its beginning, so a claim reads sends from that much earlier.
const longestLease = time.Hour

// claimRead holds the parameters of a group's read: for each recipient, what its first order asks for.
type claimRead struct {
	keys     []int64
	channels []string      // one for each key
	own      []string      // the name of the tenant's own channel, for each key; "": channels has the operator's
	without  []string      // channels that any order excludes
	reach    time.Duration // how far back sends count
	kinds    bool          // also read the kinds of sends
}

func (s *Store) newClaimRead(orders []booking.ClaimOrder, first map[int64]int) (q claimRead) {
	q.keys = slices.Sorted(maps.Keys(first))
	for _, key := range q.keys {
		channel, own := orders[first[key]].Channel, ""
		if _, name, is := booking.OwnerOf(channel); is {
			channel, own = booking.OwnRoute, name
		}
		q.channels, q.own = append(q.channels, channel), append(q.own, own)
	}
	q.without = []string{}
	reach, kinds := s.terms.Known.All()
	q.kinds = kinds
	for _, o := range orders {
		file := booking.OrNone(o.Policy)
		q.reach, q.kinds = max(q.reach, max(reach, file.Reach())+max(o.Lease, longestLease)), q.kinds || !file.Plain()
		for _, c := range o.Without {
			if !slices.Contains(q.without, c) {
				q.without = append(q.without, c)
			}
		}
	}
	return q
}

// heldCampaigns lists the states of campaigns that send nothing.
const heldCampaigns = `('pausing', 'paused', 'canceling', 'canceled')`

// claimLiveSQL reads attempts under way, then due pushes, the most urgent first. It looks up the campaign only of pushes that have one.
const claimLiveSQL = `
	SELECT k.k, l.tenant_id, l.push_id, l.send_at, l.token, l.attempts, l.started_at, l.next_at, l.own_channel IS NOT NULL, l.allowed, l.cancel_asked,
		l.campaign_id IS NOT NULL AND EXISTS (SELECT FROM campaigns c WHERE c.id = l.campaign_id AND c.status IN ` + heldCampaigns + `)
	FROM unnest($1::bigint[], $3::text[], $7::text[]) AS k (k, channel, own)
	CROSS JOIN LATERAL (
		SELECT *, CASE WHEN k.channel = '' THEN channel <> ALL ($4::text[]) ELSE channel = k.channel AND coalesce(own_channel, '') = k.own END AS allowed FROM (
			SELECT * FROM live
			WHERE shard = ANY ($6::smallint[]) AND recipient_key = k.k AND send_at <= statement_timestamp() + $2
			OFFSET 0 -- keeps the next line from choosing another index
		) l
		WHERE token IS NOT NULL OR next_at <= statement_timestamp() + $2
			AND ($5::text[] IS NULL OR channel = ANY ($5) OR channel = k.channel)
		ORDER BY token, allowed DESC, greatest(next_at, statement_timestamp()), rank / 2, send_at, push_id
		LIMIT 3
	) l`

// bodiesSQL reads the pushes of rows of live that were read before.
const bodiesSQL = `
	SELECT ` + pushes.PushColumns + `, l.i
	FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::timestamptz[], $5::int[]) AS l (push_id, token, attempts, started_at, i)
	CROSS JOIN LATERAL (SELECT * FROM {pushes} p WHERE p.shard = ANY ($6::smallint[]) AND id = l.push_id OFFSET 0) p`

// liveFound is a row of live that a claim found.
type liveFound struct {
	key     int64
	tenant  uuid.UUID
	id      uuid.UUID
	sendAt  time.Time
	token   uuid.UUID // Nil: no attempt is under way
	number  int       // of attempts
	started *time.Time
	next    time.Time
	own     bool // its channel is the tenant's own
	allowed bool
	asked   bool // a bulk cancel met an attempt of it under way
	held    bool // its campaign is in one of heldCampaigns
	push    push.Push
}

// readClaims takes the recipients' locks. In later statements it reads what is due, under way and sent, and then the
// pushes themselves. locks should not wait: all recipients of the group would wait as well.
func (s *Store) readClaims(ctx context.Context, c *pgxpool.Conn, locks pg.Locking, orders []booking.ClaimOrder, first map[int64]int) (*claimState, error) {
	q := s.newClaimRead(orders, first)
	found := &claimState{recipients: make(map[int64]*booking.ClaimState, len(q.keys))}
	live, sends, err := s.readLive(ctx, c, locks, q, found)
	if err != nil {
		return nil, err
	}
	if len(live) == 0 {
		return found, nil
	}
	var (
		inForce terms.Read
		people  terms.People
	)
	for _, l := range live {
		if inForce.Use(&s.terms.Known, l.tenant).Described {
			people.Add(l.tenant, l.key)
		}
	}
	b := &pgx.Batch{}
	inForce.Queue(b).Query(inForce.Collect)
	if len(people.Keys) > 0 {
		people.Queue(s.terms, b).Query(people.Collect)
	}
	if err := cmp.Or(s.readBodies(ctx, c, live, b), inForce.Check()); err != nil {
		return nil, err
	}
	for _, l := range live {
		found.add(l)
	}
	var suppressed terms.Suppressed
	for _, d := range found.recipients {
		of := d.Due
		if of.ID == uuid.Nil && len(d.InFlight) > 0 { // an earlier run may have claimed it
			of = d.InFlight[0].Push
		}
		if d.Due.ID != uuid.Nil {
			d.Pause = inForce.Over(&d.Due, found.now)
		}
		d.Own = inForce.OwnChannel(of.Tenant, of.Channel)
		d.Terms, d.Person = inForce.Used[of.Tenant].Terms, inForce.Person(quota.Recipient{Tenant: of.Tenant, ID: of.Recipient}, &people)
		if d.Due.ID != uuid.Nil && inForce.Used[of.Tenant].Suppresses {
			if to := d.Person.AddressOf(&d.Due); to != "" {
				suppressed.Address(of.Tenant, of.Channel, to)
			}
		}
	}
	if err := found.readSuppressed(ctx, c, &suppressed); err != nil {
		return nil, err
	}
	for _, send := range sends {
		if d := found.of(send.key); d.Due.Tenant == send.tenant && (d.Due.Recipient == send.recipient || send.recipient == "") { // "": erased
			d.Sends = append(d.Sends, send.Booking)
		}
	}
	return found, nil
}

// readSuppressed reads the suppressions of the addresses of due pushes.
func (s *claimState) readSuppressed(ctx context.Context, c pg.Batcher, of *terms.Suppressed) error {
	if !of.Any() {
		return nil
	}
	b := &pgx.Batch{}
	of.Queue(b).Query(of.Collect)
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	for _, d := range s.recipients {
		d.Suppressed = booking.SuppressionOf(of.Found, &d.Due, &d.Person)
	}
	return nil
}

// readLive takes the locks, and notes in found which it got. It reads what is due and under way, and the recent attempts.
func (s *Store) readLive(ctx context.Context, c *pgxpool.Conn, locks pg.Locking, q claimRead, found *claimState) (live []liveFound, sends []sendFound, err error) {
	shards := pg.ShardsOf(q.keys...)
	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed`)
	for _, asked := range locks.Queue(b, q.keys) {
		asked.Query(func(rows pgx.Rows) error {
			var key int64
			_, err := pgx.ForEachRow(rows, []any{&key}, func() error {
				found.of(key).Locked = true
				return nil
			})
			return err
		})
	}
	b.Queue(s.db.Joining(claimLiveSQL), q.keys, booking.MaxWait, q.channels, q.without, s.db.Cfg.Channels, shards, q.own).Query(func(rows pgx.Rows) (err error) {
		live, err = pgx.CollectRows(rows, scanLive)
		return err
	})
	since, until := s.recently(q.reach)
	b.Queue(pg.In(s.db.Joining(recentSends(q.kinds)), "{sends}", s.db.Layouts.Sends().All(since, until)...), q.keys, q.reach, shards).Query(func(rows pgx.Rows) (err error) {
		sends, err = pgx.CollectRows(rows, scanSend(q.kinds))
		return err
	})
	// Read the clock last, so that the next attempt begins after every attempt that was seen to have ended.
	b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&found.now) })
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return nil, nil, err
	}
	s.clockAhead.Store(int64(time.Until(found.now)))
	if found.now.Add(-q.reach).Before(since) || found.now.After(until) {
		return nil, nil, pg.ErrStale
	}
	return live, sends, nil
}

// recently returns bounds on the times from reach ago until now by Postgres' clock, as far as that clock is known.
func (s *Store) recently(reach time.Duration) (since, until time.Time) {
	now := time.Now().Add(time.Duration(s.clockAhead.Load()))
	return now.Add(-reach - pushes.ClockMargin), now.Add(pushes.ClockMargin)
}

func scanLive(row pgx.CollectableRow) (l liveFound, err error) {
	err = row.Scan(&l.key, &l.tenant, &l.id, &l.sendAt, (*zeronull.UUID)(&l.token), &l.number, &l.started, &l.next, &l.own, &l.allowed, &l.asked, &l.held)
	return l, err
}

// readBodies reads the pushes of rows of live, in one exchange with the other queries of the batch.
func (s *Store) readBodies(ctx context.Context, c pg.Batcher, live []liveFound, b *pgx.Batch) error {
	weeks := s.db.Layouts.Pushes()
	for table, rows := range pg.ByTable(live, func(l liveFound) string { return weeks.At(l.sendAt) }) {
		var (
			ids      []uuid.UUID
			keys     []int64
			tokens   []*uuid.UUID
			attempts []int32
			started  []*time.Time
			at       []int32
		)
		for _, i := range rows {
			l := &live[i]
			keys = append(keys, l.key)
			ids, attempts, started, at = append(ids, l.id), append(attempts, int32(l.number)), append(started, l.started), append(at, int32(i))
			var token *uuid.UUID
			if l.token != uuid.Nil {
				token = &l.token
			}
			tokens = append(tokens, token)
		}
		b.Queue(pg.In(s.db.Joining(bodiesSQL), "{pushes}", table), ids, tokens, attempts, started, at, pg.ShardsOf(keys...)).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var i int
				p, err := pushes.ScanPush(rows, &i)
				if err != nil {
					return err
				}
				live[i].push = p
				live[i].push.Own = live[i].own
			}
			return rows.Err()
		})
	}
	if b.Len() == 0 {
		return nil
	}
	return c.SendBatch(ctx, b).Close()
}

func (s *claimState) add(l liveFound) {
	switch d := s.of(l.key); {
	case l.push.ID == uuid.Nil: // it was ended or moved since
	case l.token != uuid.Nil:
		d.InFlight = append(d.InFlight, booking.InFlight{Push: l.push, Token: l.token, LeaseUntil: l.next})
	case l.allowed && d.Due.ID == uuid.Nil:
		d.Due, d.Asked, d.Held = l.push, l.asked, l.held
	default:
		d.More = true
		if !l.allowed {
			d.Barred = append(d.Barred, booking.Due{RecipientKey: l.key, Tenant: l.tenant, Channel: booking.RouteOf(&l.push), At: l.next, Rank: push.RankOf(l.push.Level, false)})
		}
	}
}

func (s *claimState) of(key int64) *booking.ClaimState {
	d := s.recipients[key]
	if d == nil {
		d = &booking.ClaimState{}
		s.recipients[key] = d
	}
	return d
}
