package booking_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestClaimState_Decide: a push of anna expires in an hour. At most one push per minute may reach her.
func TestClaimState_Decide(t *testing.T) {
	const second, minute = time.Second, time.Minute
	for _, row := range []struct {
		name    string
		due     time.Duration // relative to now
		expires time.Duration // 0: in an hour
		sends   []time.Duration
		policy  quota.Policy // nil: one per minute
		want    booking.ClaimOutcome
		wait    time.Duration // for Wait and PutOff: until when
	}{
		{name: "due, and nothing was sent", want: booking.Claimed},
		{name: "due since long", due: -30 * minute, want: booking.Claimed},
		{name: "due in a moment", due: second, want: booking.Wait, wait: second},
		{name: "due after the longest wait", due: 2 * second, want: booking.Wait, wait: 2 * second},
		{name: "due later, which another clock did not know", due: 2*second + 1, want: booking.PutOff, wait: 2*second + 1},

		{name: "a send a window ago", sends: []time.Duration{-minute}, want: booking.Claimed},
		{name: "a send just less than a window ago", sends: []time.Duration{-minute + 1}, want: booking.Wait, wait: 1},
		{name: "a send that leaves the window after the longest wait", sends: []time.Duration{-58 * second}, want: booking.Wait, wait: 2 * second},
		{name: "a send that leaves the window later", sends: []time.Duration{-58*second + 1}, want: booking.PutOff, wait: 2*second + 1},
		{name: "several sends: the last decides", sends: []time.Duration{-5 * minute, -3 * minute, -10 * second}, want: booking.PutOff, wait: 50 * second},
		{name: "a send that ends only now", sends: []time.Duration{0}, want: booking.PutOff, wait: minute},
		{name: "the push is due later than the rules allow it", due: second, sends: []time.Duration{-minute + 1}, want: booking.Wait, wait: second},
		{name: "the rules allow it later than it is due", due: second, sends: []time.Duration{-minute + 2*second}, want: booking.Wait, wait: 2 * second},

		{name: "expired just now", expires: -1, want: booking.TooLate},
		{name: "expired, whatever was sent", expires: -minute, sends: []time.Duration{-second}, want: booking.TooLate},
		{name: "it expires before the rules allow it", expires: 10 * second, sends: []time.Duration{-second}, want: booking.PutOff, wait: 10 * second},
		{name: "it expires in a moment, before the rules allow it", expires: second, sends: []time.Duration{-second}, want: booking.Wait, wait: second},
		{name: "a rule that allows nothing", policy: quota.Policy{{Limit: 0, Window: minute}}, want: booking.PutOff, wait: hour},
		{name: "no rules", policy: quota.Policy{}, sends: []time.Duration{-1, -1, -1}, want: booking.Claimed},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := setup(t).push("anna", row.due)
			p.NextAt, p.Attempts, p.ExpiresAt = p.SendAt, 2, noon.Add(hour)
			if row.expires != 0 {
				p.ExpiresAt = noon.Add(row.expires)
			}
			s := booking.ClaimState{Due: p}
			for _, ago := range row.sends {
				s.Sends = append(s.Sends, quota.Booking{ID: uuid.New(), At: noon.Add(ago)})
			}
			o := booking.ClaimOrder{Policy: onePerMinute, Lease: minute, Token: uuid.New()}
			if row.policy != nil {
				o.Policy = row.policy
			}
			want := booking.Claim{Outcome: row.want, Push: p, Now: noon}
			switch row.want {
			case booking.Claimed:
				want.Token, want.Attempt, want.StartedAt, want.LeaseUntil = o.Token, 3, noon, noon.Add(minute)
			case booking.Wait:
				want.Wait = row.wait
			case booking.PutOff:
				want.Push.NextAt = noon.Add(row.wait)
				if row.due == 0 { // a rule puts it off
					want.Push.Held = push.Hold{By: o.Policy.Names()[0], Since: noon, Until: want.Push.NextAt}
				}
			}
			if diff := cmp.Diff(want, s.Decide(o, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestClaimState_InFlight checks that a recipient has one running attempt at a time, and that a repeated claim finds
// its own.
func TestClaimState_InFlight(t *testing.T) {
	b := setup(t)
	sending, due := b.push("anna", -time.Minute), b.push("anna", 0)
	sending.Attempts, due.NextAt, due.ExpiresAt = 2, noon, noon.Add(hour)
	mine, others := uuid.New(), uuid.New()
	own := booking.InFlight{Push: sending, Token: mine, LeaseUntil: noon.Add(50 * time.Second)}
	for name, row := range map[string]struct {
		state booking.ClaimState
		want  booking.Claim
	}{
		"nothing is due":                         {booking.ClaimState{}, booking.Claim{}},
		"another attempt is under way":           {booking.ClaimState{Due: due, InFlight: []booking.InFlight{{Push: sending, Token: others}}}, booking.Claim{}},
		"the same, and nothing else is due":      {booking.ClaimState{InFlight: []booking.InFlight{{Push: sending, Token: others}}}, booking.Claim{}},
		"another transaction has the lock":       {booking.ClaimState{Locked: true}, booking.Claim{Outcome: booking.Wait, Wait: booking.LockWait}},
		"an earlier run has committed the claim": {booking.ClaimState{Due: due, InFlight: []booking.InFlight{own}}, claimedBefore(own)},
	} {
		t.Run(name, func(t *testing.T) {
			row.want.Now = noon
			got := row.state.Decide(booking.ClaimOrder{Policy: onePerMinute, Lease: time.Minute, Token: mine}, noon)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// claimedBefore returns the claim of a running attempt with a lease of a minute.
func claimedBefore(f booking.InFlight) booking.Claim {
	return booking.Claim{
		Outcome: booking.Claimed, Push: f.Push, Token: f.Token, Attempt: f.Push.Attempts, Repeated: true,
		StartedAt: f.LeaseUntil.Add(-time.Minute), LeaseUntil: f.LeaseUntil,
	}
}

// TestClaimOrder_Behind checks that the first of several claims for a recipient is served and the others get nothing,
// because its caller claims again; but not for another channel.
func TestClaimOrder_Behind(t *testing.T) {
	for _, row := range []struct {
		first, second string
		want          booking.ClaimOutcome
	}{{"", "", booking.Nothing}, {"sms", "sms", booking.Nothing}, {"sms", "", booking.Again}, {"", "sms", booking.Again}} {
		got := booking.ClaimOrder{Channel: row.second}.Behind(booking.ClaimOrder{Channel: row.first}, noon)
		if got.Outcome != row.want || !got.Now.Equal(noon) {
			t.Errorf("%q behind %q: %+v", row.second, row.first, got)
		}
	}
}

// TestLost_Finish checks that a lost attempt has an unknown outcome, and is tried again if its channel allows it and
// time is left.
func TestLost_Finish(t *testing.T) {
	retry := push.Retry{MaxAttempts: 3, First: time.Minute, Max: hour}
	never := retry
	never.FailOnUnknown = true
	for name, row := range map[string]struct {
		retry   push.Retry
		attempt int
		left    time.Duration
		want    push.Status
	}{
		"the first of three attempts": {retry, 1, hour, push.Scheduled},
		"the last attempt":            {retry, 3, hour, push.Failed},
		"no time is left":             {retry, 1, 30 * time.Second, push.Failed},
		"the channel does not repeat what may have been delivered": {never, 1, hour, push.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			of := setup(t).push("anna", 0)
			lost := booking.Lost{Attempt: booking.Attempt{Push: of.ID, Token: uuid.New(), Number: row.attempt}, Of: of, Left: row.left}
			f := lost.Finish(row.retry)
			if f.Attempt != lost.Attempt || !f.Reaped || f.Outcome != push.Unknown || f.Error == "" {
				t.Errorf("%+v", f)
			}
			if f.Resolution.Status != row.want || f.Resolution.Reason == "" {
				t.Errorf("%+v, want %s", f.Resolution, row.want)
			}
		})
	}
}
