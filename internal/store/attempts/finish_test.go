package attempts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// record holds the compared fields of a push and its last attempt.
type record struct {
	Status            push.Status
	LastError         string
	PossiblyDelivered bool
	Outcome           push.Outcome
	Error, MessageID  string
}

func (b *bundle) record(t testing.TB, p push.Push) record {
	t.Helper()
	p = b.MustRead(t, p)
	s := p.Sends[len(p.Sends)-1]
	return record{p.Status, p.LastError, p.PossiblyDelivered, s.Outcome, s.Error, s.ProviderMessageID}
}

// TestFinish_Records checks that each result of an attempt is recorded, and that a second finish of the same attempt
// changes nothing.
func TestFinish_Records(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		finish booking.Finish
		want   record
	}{
		"delivered": {
			booking.Finish{Outcome: push.Delivered, ProviderMessageID: "m-1", Resolution: push.Resolution{Status: push.Sent}},
			record{Status: push.Sent, Outcome: push.Delivered, MessageID: "m-1"},
		},
		"refused, to be tried again": {
			booking.Finish{Outcome: push.Refused, Error: "busy", Resolution: push.Resolution{Status: push.Scheduled, Reason: "busy"}},
			record{Status: push.Scheduled, LastError: "busy", Outcome: push.Refused, Error: "busy"},
		},
		"refused for good": {
			booking.Finish{Outcome: push.Refused, Error: "bad", Resolution: push.Resolution{Status: push.Failed, Reason: "so bad"}},
			record{Status: push.Failed, LastError: "so bad", Outcome: push.Refused, Error: "bad"},
		},
		"unknown, to be tried again": {
			booking.Finish{Outcome: push.Unknown, Error: "reset", Resolution: push.Resolution{Status: push.Scheduled, Reason: "reset"}},
			record{Status: push.Scheduled, LastError: "reset", PossiblyDelivered: true, Outcome: push.Unknown, Error: "reset"},
		},
		"unknown, and that is the end": {
			booking.Finish{Outcome: push.Unknown, Error: "reset", Resolution: push.Resolution{Status: push.Failed, Reason: "no answer"}},
			record{Status: push.Failed, LastError: "no answer", PossiblyDelivered: true, Outcome: push.Unknown, Error: "reset"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.Booked(t, "anna", 0)
			c := b.Claimed(t, p)
			b.MustFinish(t, c, row.finish)
			if diff := cmp.Diff(row.want, b.record(t, p)); diff != "" {
				t.Error(diff)
			}
			b.MustFinish(t, c, row.finish) // again, as after a lost reply
			if got := b.MustRead(t, p); got.Gen != p.Gen+1 || got.Attempts != 1 {
				t.Errorf("after two finishes of one attempt: %+v", got)
			}
			b.MustAudit(t, nil)
		})
	}
}

// TestFinish_RetryDelay checks that the next attempt begins a delay after the end of the last one, by Postgres' clock.
func TestFinish_RetryDelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	f := storetest.TryAgain
	f.Resolution.Delay = time.Hour
	before := storetest.Ask[time.Time](t, b.DB, `SELECT clock_timestamp()`)
	b.MustFinish(t, b.Claimed(t, p), f)
	after := storetest.Ask[time.Time](t, b.DB, `SELECT clock_timestamp()`)
	if next := b.MustRead(t, p).NextAt.Add(-time.Hour); next.Before(before) || next.After(after) {
		t.Errorf("it is tried again an hour after %s; it ended from %s to %s", next, before, after)
	}
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Nothing {
		t.Errorf("%+v", c)
	}
}

// TestFinish_PossiblyDeliveredStays checks that a push stays possibly delivered after an attempt with an unknown
// outcome.
func TestFinish_PossiblyDeliveredStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.LostTrack)
	b.MustFinish(t, b.Claimed(t, p), storetest.TryAgain)
	canceled, err := b.Cancel(t.Context(), b.TenantID, p.ID)
	if err != nil || !canceled.PossiblyDelivered || canceled.Status != push.Canceled {
		t.Errorf("%+v, %v", canceled, err)
	}
}

// reaped books a push and reaps its first attempt.
func (b *bundle) reaped(t *testing.T, recipient string, status push.Status) (push.Push, booking.Claim) {
	t.Helper()
	p := b.Booked(t, recipient, 0)
	c := b.Claimed(t, p)
	b.Exec(t, `UPDATE live SET next_at = clock_timestamp() WHERE push_id = $1`, p.ID)
	shard := push.Shard(push.RecipientKey(b.TenantID, recipient))
	all, err := b.Lost(t.Context(), []push.Lane{{First: shard, Last: shard}}, 100)
	lost := slices.DeleteFunc(all, func(l booking.Lost) bool { return l.Push != p.ID })
	if err != nil || len(lost) != 1 || lost[0].Token != c.Token || lost[0].Number != 1 || lost[0].Left < 23*time.Hour || lost[0].Left > 24*time.Hour {
		t.Fatalf("lost: %+v, %v", lost, err)
	}
	b.MustFinish(t, c, booking.Finish{Outcome: push.Unknown, Error: "lost", Reaped: true, Resolution: push.Resolution{Status: status, Reason: "lost"}})
	return b.MustRead(t, p), c
}

// TestFinish_Reaped checks that a reaped attempt ends with its lease, and that its outcome is unknown.
func TestFinish_Reaped(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p, _ := b.reaped(t, "anna", push.Scheduled)
	lease := storetest.Ask[time.Time](t, b.DB, `SELECT lease_until FROM sends`)
	if len(p.Sends) != 1 || !p.Sends[0].EndedAt.Equal(lease) || p.Sends[0].Outcome != push.Unknown || !p.PossiblyDelivered || p.Status != push.Scheduled {
		t.Errorf("%+v", p)
	}
	if lost, err := b.Lost(t.Context(), push.Lanes(1), 10); err != nil || len(lost) != 0 {
		t.Errorf("still lost: %+v, %v", lost, err)
	}
}

// TestFinish_Late checks that only a delivered finish ends a waiting push after the reaper's finish.
func TestFinish_Late(t *testing.T) {
	t.Parallel()
	lost := record{Status: push.Scheduled, LastError: "lost", PossiblyDelivered: true, Outcome: push.Unknown, Error: "lost"}
	delivered := storetest.Sent
	delivered.ProviderMessageID = "m-1"
	for name, row := range map[string]struct {
		became push.Status // after the reaping
		late   booking.Finish
		want   record
	}{
		"refused":                       {push.Scheduled, storetest.TryAgain, lost},
		"refused for good":              {push.Scheduled, storetest.GaveUp, lost},
		"unknown":                       {push.Scheduled, storetest.LostTrack, lost},
		"delivered":                     {push.Scheduled, delivered, record{Status: push.Sent, PossiblyDelivered: true, Outcome: push.Delivered, MessageID: "m-1"}},
		"delivered, after the last one": {push.Failed, delivered, record{Status: push.Failed, LastError: "lost", PossiblyDelivered: true, Outcome: push.Delivered, MessageID: "m-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p, c := b.reaped(t, "anna", row.became)
			b.MustFinish(t, c, row.late)
			if diff := cmp.Diff(row.want, b.record(t, p)); diff != "" {
				t.Error(diff)
			}
			after := b.MustRead(t, p)
			if changed := row.want != (record{}) && row.want.Status != row.became; (after.Gen > p.Gen) != changed {
				t.Errorf("gen %d, was %d", after.Gen, p.Gen)
			}
			if !after.Sends[0].EndedAt.Equal(p.Sends[0].EndedAt) {
				t.Errorf("the attempt's end moved from %s to %s", p.Sends[0].EndedAt, after.Sends[0].EndedAt)
			}
		})
	}
}

// TestFinish_LateBesideNextAttempt checks that a late finish does not touch the attempt under way. If that attempt
// fails, a late delivery still ends the push.
func TestFinish_LateBesideNextAttempt(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]booking.Finish{"refused": storetest.TryAgain, "unknown": storetest.LostTrack, "delivered": storetest.Sent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p, first := b.reaped(t, "anna", push.Scheduled)
			second := b.Claimed(t, p)
			b.MustFinish(t, first, late)
			got := b.MustRead(t, p)
			if got.Status != push.Sending || got.Attempts != 2 || got.Sends[1].Outcome != "" {
				t.Fatalf("%+v", got)
			}
			if (got.Sends[0].Outcome == push.Delivered) != (late.Outcome == push.Delivered) {
				t.Errorf("the first attempt: %+v", got.Sends[0])
			}
			b.MustFinish(t, second, storetest.TryAgain)
			want := record{Status: push.Scheduled, LastError: "busy", PossiblyDelivered: true, Outcome: push.Refused, Error: "busy"}
			if late.Outcome == push.Delivered {
				want.Status, want.LastError = push.Sent, ""
			}
			if diff := cmp.Diff(want, b.record(t, p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFinish_ReaperAndWorker checks that a push that was delivered is not sent again if the reaper and the worker
// finish the same attempt in one transaction, in either order.
func TestFinish_ReaperAndWorker(t *testing.T) {
	t.Parallel()
	g := storetest.Gather(t, setup(t).Bundle)
	together := 0
	for try := 0; try < 100 && together < 10; try++ {
		end := func(recipient string) (booking.Claim, func()) {
			c := g.Claimed(t, g.Booked(t, recipient, 0))
			return c, func() { g.MustFinish(t, c, storetest.Sent) }
		}
		x, endX := end("x")
		c, worker := end("anna")
		reaper := func() {
			g.MustFinish(t, c, booking.Finish{Outcome: push.Unknown, Error: "lost", Reaped: true, Resolution: push.Resolution{Status: push.Scheduled, Reason: "lost"}})
		}
		calls := []func(){reaper, worker}
		if try%2 == 1 {
			calls = []func(){worker, reaper}
		}
		if g.Together(t, `SELECT FROM pushes WHERE id = ANY ($1) FOR UPDATE`, []any{[][16]byte{x.Push.ID}}, []func(){endX}, calls) {
			together++
		}
		if got := (&bundle{g.Bundle}).record(t, c.Push); got.Status != push.Sent || got.Outcome != push.Delivered {
			t.Fatalf("try %d: %+v", try, got)
		}
	}
	if together == 0 {
		t.Error("the two never shared a transaction")
	}
}
