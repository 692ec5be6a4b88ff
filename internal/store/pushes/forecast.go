package pushes

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// forecasts is how many forecasts are made at a time, one of each tenant at most: each reads all that its tenant has booked.
const forecasts = 2

// forecastTime is for how long Postgres may work on one.
const forecastTime = 50 * time.Second

// firstConflicts is how many conflicts a forecast names.
const firstConflicts = 100

// bookedSQL reads all that a tenant has booked from a time on, recipient by recipient, with what is known of them.
const bookedSQL = `
	SELECT p.recipient_key, p.recipient, p.id, p.send_at, p.channel, p.category, p.send_at > statement_timestamp(), coalesce(r.time_zone, ''), coalesce(r.limits, '{}')
	FROM {pushes} p LEFT JOIN recipients r
		ON r.shard = p.recipient_key & 255 AND r.recipient_key = p.recipient_key AND r.tenant_id = p.tenant_id AND r.recipient = p.recipient
	WHERE p.tenant_id = $1 AND p.send_at > statement_timestamp() - $2::interval AND p.freed = false AND p.status IN ('scheduled', 'sent')
	ORDER BY p.recipient_key, p.recipient, p.send_at, p.id`

// Forecast replays under some terms what a tenant has booked, and says which of the pushes that wait for a later time do not
// fit. It takes no lock, changes nothing, and needs little memory, however much is booked.
func (s *Store) Forecast(ctx context.Context, tenant uuid.UUID, terms booking.Terms) (policy.Forecast, error) {
	var f forecast
	ctx, cancel := context.WithTimeout(ctx, forecastTime)
	defer cancel()
	loan, err := s.forecasts.Acquire(ctx, tenant, 1)
	if err != nil {
		return f.Forecast, fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	defer loan.Release()
	for tries := 0; ; tries++ {
		f = forecast{terms: terms}
		err := pg.OnConn(ctx, s.db.ReadPool, func(c *pgxpool.Conn) error {
			if err := s.db.Layouts.Fresh(ctx, c); err != nil {
				return err
			}
			return s.forecast(ctx, c, tenant, &f)
		})
		if err == nil {
			f.sort()
			return f.Forecast, nil
		}
		if tries == 2 || !s.db.Layouts.Mend(err) && !pg.Again(err) {
			return f.Forecast, fmt.Errorf("forecast: %w", pg.Classify(err))
		}
	}
}

func (s *Store) forecast(ctx context.Context, c *pgxpool.Conn, tenant uuid.UUID, f *forecast) error {
	tx, err := c.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', $1, true), set_config('jit', 'off', true)`, pg.Milliseconds(forecastTime)); err != nil {
		return err
	}
	reach := f.terms.Reach()
	from := time.Now().Add(-reach - ClockMargin)
	if err := s.Certain(ctx, pg.Reader{Conn: c}, from, booking.EndOfTime); err != nil {
		return err
	}
	tables := s.db.Layouts.Pushes().Between(from, booking.EndOfTime)
	if len(tables) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, pg.In(bookedSQL, "{pushes}", tables...), tenant, reach)
	var (
		r        booked
		zoneName string
	)
	_, err = pgx.ForEachRow(rows, []any{&r.key, &r.recipient, &r.ID, &r.At, &r.Kind.Channel, &r.Kind.Category, &r.waits, &zoneName, &r.person.Limits}, func() error {
		if r.person.Zone = nil; zoneName != "" {
			r.person.Zone, _ = zone.Load(zoneName)
		}
		f.add(&r)
		r.person.Limits = nil
		return nil
	})
	return err
}

// booked is a booking of some recipient.
type booked struct {
	key       int64
	recipient string
	person    quota.Person
	quota.Booking
	waits bool // for a later time
}

// forecast gathers a forecast.
type forecast struct {
	policy.Forecast
	terms     booking.Terms
	replay    *booking.Replay // of the recipient whose bookings come
	key       int64
	recipient string
}

func (f *forecast) add(b *booked) {
	bulkhead.Yield()
	if f.replay == nil || f.key != b.key || f.recipient != b.recipient {
		f.key, f.recipient = b.key, b.recipient
		f.replay = booking.NewReplay(booking.Standing{Terms: f.terms, Person: booking.Person{Person: b.person}})
	}
	if !b.waits {
		f.replay.Count(b.Booking)
		return
	}
	forbidden := f.replay.Try(b.Booking)
	if forbidden == nil {
		return
	}
	f.Conflicts++
	if f.ByRule == nil {
		f.ByRule = map[string]int{}
	}
	for _, rule := range forbidden {
		f.ByRule[rule]++
	}
	f.First = append(f.First, policy.Conflict{Push: b.ID, SendAt: b.At, Rule: forbidden[0]})
	if len(f.First) >= 10*firstConflicts {
		f.sort()
	}
}

// sort leaves the first conflicts, by send time and then by id.
func (f *forecast) sort() {
	slices.SortFunc(f.First, func(a, b policy.Conflict) int {
		return cmp.Or(a.SendAt.Compare(b.SendAt), bytes.Compare(a.Push[:], b.Push[:]))
	})
	f.First = f.First[:min(len(f.First), firstConflicts)]
}
