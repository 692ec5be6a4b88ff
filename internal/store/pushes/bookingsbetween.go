package pushes

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// BookingsBetween returns a recipient's bookings strictly between from and until, by time, with the terms and the recipient's
// description; file holds the terms of a tenant without a policy of its own. It sees what was committed before the call,
// takes no lock, and shares a transaction with concurrent glances. It returns false if the recipient has too many bookings
// for a shared transaction: use [terms.Store.Standing] and [Store.Bookings] then.
func (s *Store) BookingsBetween(ctx context.Context, r quota.Recipient, file booking.Terms, from, until time.Time) ([]booking.Held, booking.Standing, bool, error) {
	if err := ctx.Err(); err != nil || s.Crowds.knows(r) {
		return nil, booking.Standing{}, false, err
	}
	g, err := s.glanceGroups.Do(span{recipient: r, key: push.RecipientKey(r.Tenant, r.ID), view: quota.View{From: from, Until: until}, most: sharedRows, file: file})
	return g.held, g.of, err == nil && len(g.held) <= sharedRows, err
}

func (s *Store) glanceTogether(ctx context.Context, spans []span) (seen []glance, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		var (
			inForce terms.Read
			people  terms.People
		)
		seen = make([]glance, len(spans))
		for i := range spans {
			sp := &spans[i]
			known := inForce.Use(&s.terms.Known, sp.recipient.Tenant)
			seen[i].of.Terms = known.Or(sp.file)
			if sp.kinds = !seen[i].of.Terms.Plain(); known.Described {
				people.Add(sp.recipient.Tenant, sp.key)
			}
		}
		pushes := s.db.Layouts.Pushes()
		reads, certain := tablesOf(spans, pushes), coverAll(pushes, spans)
		b := &pgx.Batch{}
		inForce.Queue(b)
		if len(people.Keys) > 0 {
			people.Queue(s.terms, b)
		}
		if !certain {
			b.Queue(pg.CompleteSQL, pushes.Names())
		}
		for _, r := range reads {
			r.queue(b, spans)
		}
		res := c.SendBatch(ctx, b)
		rows, _ := res.Query()
		err := inForce.Collect(rows)
		if len(people.Keys) > 0 {
			rows, _ := res.Query()
			err = cmp.Or(err, people.Collect(rows))
		}
		if !certain {
			if err = cmp.Or(err, res.QueryRow().Scan(&certain)); err == nil && !certain {
				err = pg.ErrStale
			}
		}
		held := make([][]booking.Held, len(spans))
		for _, r := range reads {
			err = cmp.Or(err, r.collect(res, spans, held))
		}
		for i := range spans {
			seen[i].held, seen[i].of.Person = held[i], inForce.Person(spans[i].recipient, &people)
		}
		return cmp.Or(res.Close(), err, inForce.Check())
	})
	return seen, err
}
