package pushes

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/zone"
)

// forecasts limits how many forecasts run at a time, at most one per tenant: each reads all bookings of its tenant.
const forecasts = 2

// forecastTime limits the time of one forecast.
const forecastTime = 50 * time.Second

// firstConflicts limits how many conflicts a forecast lists.
const firstConflicts = 100

// bookedSQL reads a tenant's bookings since a time, ordered by recipient, with the recipients' zones and limits.
const bookedSQL = `
	SELECT p.recipient_key, p.recipient, p.id, p.send_at, p.channel, p.category, p.send_at > statement_timestamp(), coalesce(r.time_zone, ''), coalesce(r.limits, '{}')
	FROM {pushes} p LEFT JOIN recipients r
		ON r.shard = p.recipient_key & 255 AND r.recipient_key = p.recipient_key AND r.tenant_id = p.tenant_id AND r.recipient = p.recipient
	WHERE p.tenant_id = $1 AND p.send_at > statement_timestamp() - $2::interval AND p.freed = false AND p.status IN ('scheduled', 'sent')
	ORDER BY p.recipient_key, p.recipient, p.send_at, p.id`

// Forecast replays a tenant's bookings under some terms, and counts and lists the pushes with a later send time that the
// terms would forbid. It takes no lock, changes nothing, and needs little memory however many bookings there are.
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
	if err := s.CheckTables(ctx, pg.Reader{Conn: c}, from, booking.EndOfTime); err != nil {
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

// booked is a booking with its recipient.
type booked struct {
	key       int64
	recipient string
	person    quota.Person
	quota.Booking
	waits bool // its send time is in the future
}

// forecast is a [policy.Forecast] in the making.
type forecast struct {
	policy.Forecast
	terms     booking.Terms
	replay    *booking.Replay // of the present recipient
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

// sort sorts the conflicts by send time and id, and keeps the first ones.
func (f *forecast) sort() {
	slices.SortFunc(f.First, func(a, b policy.Conflict) int {
		return cmp.Or(a.SendAt.Compare(b.SendAt), bytes.Compare(a.Push[:], b.Push[:]))
	})
	f.First = f.First[:min(len(f.First), firstConflicts)]
}
