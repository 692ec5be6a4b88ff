package booking

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// The names of a tenant's caps.
const (
	PendingPushes    = "pending_pushes"
	RecipientsPerDay = "recipients_per_day"
	AudienceBytes    = "audience_bytes"
)

// CapUsage holds a tenant's caps, and how much of them is used, or reserved for other orders, at the time of a
// decision.
type CapUsage struct {
	push.Caps
	Pending int         // pushes that are scheduled or being sent
	Days    map[Day]int // recipients of pushes on a day; a missing day was not counted
}

// Day is a day of UTC, as the number of days since 1970-01-01.
type Day int64

// DayOf returns the day that a time lies on.
func DayOf(t time.Time) Day { return Day(t.Truncate(24*time.Hour).Unix() / secondsADay) }

const secondsADay = 24 * 60 * 60

// Begin returns the midnight at the start of the day.
func (d Day) Begin() time.Time { return time.Unix(int64(d)*secondsADay, 0).UTC() }

// Capped rejects a push because a cap of the tenant is used up.
type Capped struct {
	Cap   string // its name
	Limit int
	Used  int // at least; counting stops just beyond the limit
	Day   Day // for RecipientsPerDay
}

// Error returns one sentence.
func (c *Capped) Error() string {
	if c.Cap == AudienceBytes {
		return fmt.Sprintf("the tenant's cap %s (bytes of the audiences that are kept) is used up: limit %d, used %d with this one; delete drafts, wait until "+
			"campaigns that have ended are removed, or ask the operator for more", c.Cap, c.Limit, c.Used)
	}
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

// Days returns how many pushes of the order may land on each day that its drafts name. A draft that may be moved can
// land on any of them.
func (o Order) Days() map[Day]int {
	days, movable := map[Day]int{}, 0
	for i := range o.Drafts {
		if day := DayOf(o.Drafts[i].Push.SendAt); o.Drafts[i].Latest.IsZero() {
			days[day]++
		} else {
			movable++
			days[day] += 0
		}
	}
	for day := range days {
		days[day] += movable
	}
	return days
}

// clone returns a copy that the decider may count in.
func (u *CapUsage) clone() *CapUsage {
	if u == nil {
		return nil
	}
	c := *u
	c.Days = maps.Clone(u.Days)
	return &c
}

// take uses room for one more push at a time. It returns [Booked] if there is room, and otherwise [OverCap] or
// [Uncounted].
func (u *CapUsage) take(at time.Time, newRecipient bool) (Outcome, *Capped) {
	if u == nil {
		return Booked, nil
	}
	if u.PendingPushes > 0 && u.Pending >= u.PendingPushes {
		return OverCap, &Capped{Cap: PendingPushes, Limit: u.PendingPushes, Used: u.Pending}
	}
	if newRecipient {
		if outcome, capped := u.takeDay(at); outcome != Booked {
			return outcome, capped
		}
	}
	u.Pending++
	return Booked, nil
}

// takeDay is take for the cap of the day only, for a recipient without another push on it.
func (u *CapUsage) takeDay(at time.Time) (Outcome, *Capped) {
	day := DayOf(at)
	used, counted := u.Days[day]
	capped := &Capped{Cap: RecipientsPerDay, Limit: u.RecipientsPerDay, Used: used, Day: day}
	switch {
	case !counted:
		return Uncounted, capped
	case used >= u.RecipientsPerDay:
		return OverCap, capped
	}
	u.Days[day]++
	return Booked, nil
}

// newRecipientOfDay reports whether a push at a time uses room of its day's cap.
func (u *CapUsage) newRecipientOfDay(view *quota.View, at time.Time) bool {
	return u.limitsDays() && !view.Has(DayOf(at).Begin(), (DayOf(at)+1).Begin())
}

func (u *CapUsage) limitsDays() bool { return u != nil && u.RecipientsPerDay > 0 }
