package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// HeldBooking is a booking and the state of its push.
type HeldBooking struct {
	quota.Booking
	Status push.Status
}

// span asks for a recipient's bookings strictly between two times.
type span struct {
	recipient   quota.Recipient
	from, until time.Time
}

// Bookings returns the places that a recipient holds strictly between from and
// until, by time. It sees what was committed when it was asked, takes no lock,
// and works together with others of the moment.
func (s *Store) Bookings(ctx context.Context, r quota.Recipient, from, until time.Time) ([]HeldBooking, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.looks.Do(span{r, from, until})
}

func (s *Store) lookTogether(ctx context.Context, spans []span) ([][]HeldBooking, error) {
	var held [][]HeldBooking
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		var err error
		held, err = bookings(ctx, c, spans)
		return err
	})
	return held, err
}

func bookings(ctx context.Context, c *pgxpool.Conn, spans []span) ([][]HeldBooking, error) {
	var (
		keys         = make([]int64, len(spans))
		tenants      = make([][16]byte, len(spans))
		recipients   = make([]string, len(spans))
		since, until = make([]time.Time, len(spans)), make([]time.Time, len(spans))
	)
	for i, sp := range spans {
		keys[i] = push.RecipientKey(sp.recipient.Tenant, sp.recipient.ID)
		tenants[i], recipients[i] = sp.recipient.Tenant, sp.recipient.ID
		since[i], until[i] = sp.from, sp.until
	}
	rows, _ := c.Query(ctx, bookingsSQL, keys, tenants, recipients, since, until)
	held := make([][]HeldBooking, len(spans))
	var (
		i int
		b HeldBooking
	)
	_, err := pgx.ForEachRow(rows, []any{&i, (*[16]byte)(&b.ID), &b.At, (*string)(&b.Status)}, func() error {
		held[i-1] = append(held[i-1], b)
		return nil
	})
	return held, err
}
