package store

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// The names of a tenant's caps.
const (
	PendingPushes    = "pending_pushes"
	RecipientsPerDay = "recipients_per_day"
)

// CapUsage is what a tenant may have and, as its caller has counted, what it
// has or others may be getting. The decider counts on in a copy. All drafts of an order with one are of one tenant.
type CapUsage struct {
	push.Caps
	Pending int         // pushes that are scheduled or being sent
	Days    map[Day]int // recipients; a day that is missing was not counted
}

// Day is a day of UTC, in days since 1970.
type Day int64

// DayOf returns the day on which a time lies.
func DayOf(t time.Time) Day {
	seconds := t.Unix()
	if seconds < 0 {
		seconds -= secondsADay - 1
	}
	return Day(seconds / secondsADay)
}

const secondsADay = 24 * 60 * 60

// Begin returns the midnight at which the day begins.
func (d Day) Begin() time.Time { return time.Unix(int64(d)*secondsADay, 0).UTC() }

// Capped is a tenant's cap that leaves no place for a push.
type Capped struct {
	Cap   string // its name
	Limit int
	Used  int // at least; nobody counts far beyond the limit
	Day   Day // of RecipientsPerDay
}

// Error says it in one sentence.
func (c *Capped) Error() string {
	if c.Cap == PendingPushes {
		return fmt.Sprintf("the tenant's cap %s (pushes that are scheduled or being sent) is used up: limit %d, used %s; wait until some are sent, "+
			"cancel others, or ask the operator for more", c.Cap, c.Limit, c.used())
	}
	return fmt.Sprintf("the tenant's cap %s (recipients of pushes with a send time on %s, UTC) is used up: limit %d, used %s; send to the same "+
		"recipients, choose another day, or ask the operator for more", c.Cap, c.Day.Begin().Format(time.DateOnly), c.Limit, c.used())
}

func (c *Capped) used() string {
	if c.Used > c.Limit {
		return fmt.Sprintf("%d or more", c.Used)
	}
	return strconv.Itoa(c.Used)
}

// clone is for the decider, which counts on in it.
func (a *CapUsage) clone() *CapUsage {
	if a == nil {
		return nil
	}
	c := *a
	c.Days = maps.Clone(a.Days)
	return &c
}

// take takes a place for one more push at a time. It is Booked if there is
// one, or OverCap or Uncounted.
func (a *CapUsage) take(view *quota.View, at time.Time) (Outcome, *Capped) {
	if a == nil {
		return Booked, nil
	}
	if a.PendingPushes > 0 && a.Pending >= a.PendingPushes {
		return OverCap, &Capped{Cap: PendingPushes, Limit: a.PendingPushes, Used: a.Pending}
	}
	outcome, full := a.takeDay(view, at)
	if outcome == Booked {
		a.Pending++
	}
	return outcome, full
}

// takeDay is take for the cap of the day alone. A recipient who has another
// push on that day takes no place.
func (a *CapUsage) takeDay(view *quota.View, at time.Time) (Outcome, *Capped) {
	if !a.newRecipientOfDay(view, at) {
		return Booked, nil
	}
	day := DayOf(at)
	used, counted := a.Days[day]
	full := &Capped{Cap: RecipientsPerDay, Limit: a.RecipientsPerDay, Used: used, Day: day}
	switch {
	case !counted:
		return Uncounted, full
	case used >= a.RecipientsPerDay:
		return OverCap, full
	}
	a.Days[day]++
	return Booked, nil
}

// newRecipientOfDay reports whether a push at a time takes a place of its day.
func (a *CapUsage) newRecipientOfDay(view *quota.View, at time.Time) bool {
	return a != nil && a.RecipientsPerDay > 0 && !view.Has(DayOf(at).Begin(), (DayOf(at)+1).Begin())
}

// whole widens a view to the day of a send time, and to all days up to latest,
// where the decider has to know whether the recipient has a push on it.
func (a *CapUsage) whole(v quota.View, at, latest time.Time) quota.View {
	if a == nil || a.RecipientsPerDay == 0 {
		return v
	}
	v.From = earlier(v.From, DayOf(at).Begin().Add(-time.Nanosecond))
	if latest.Before(at) {
		latest = at
	}
	if end := (DayOf(latest) + 1).Begin(); end.After(v.Until) {
		v.Until = end
	}
	return v
}

// Pending counts a tenant's pushes that are scheduled or being sent, up to
// most.
func (s *Store) Pending(ctx context.Context, tenant uuid.UUID, most int) (int, error) {
	return s.count(ctx, tenant, `
		SELECT count(*) FROM (
			SELECT FROM pushes WHERE tenant_id::text = $1::uuid::text AND '' || status IN ('scheduled', 'sending') LIMIT $2
		) p`, most)
}

// Recipients counts the recipients of a tenant who have a push that is
// scheduled, being sent or sent on a day, up to most. It reads all pushes of
// that day.
func (s *Store) Recipients(ctx context.Context, tenant uuid.UUID, day Day, most int) (int, error) {
	return s.count(ctx, tenant, `
		SELECT count(*) FROM (
			SELECT DISTINCT recipient_key FROM (
				SELECT recipient_key, status FROM pushes WHERE tenant_id = $1 AND send_at >= $3 AND send_at < $4
				OFFSET 0 -- keeps the next line from choosing another index
			) p
			WHERE status IN ('scheduled', 'sending', 'sent') LIMIT $2
		) r`, most, day.Begin(), (day + 1).Begin())
}

func (s *Store) count(ctx context.Context, tenant uuid.UUID, sql string, args ...any) (n int, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return c.QueryRow(ctx, sql, append([]any{[16]byte(tenant)}, args...)...).Scan(&n)
	})
	return n, err
}
