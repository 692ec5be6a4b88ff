package audit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// postpone moves a push to a time relative to the start of the tests.
func (b *bundle) postpone(t testing.TB, p push.Push, in time.Duration) {
	t.Helper()
	p.SendAt = storetest.Began.Add(in)
	p.RequestedSendAt = p.SendAt
	v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: storetest.PerMinute})
	if err != nil || v.Outcome != booking.Booked {
		t.Fatalf("%+v, %v", v, err)
	}
}

// ready makes a push that waits for its retry, or has been moved, due now.
func (b *bundle) ready(t testing.TB, p push.Push) {
	t.Helper()
	b.Exec(t, `UPDATE pushes SET send_at = least(send_at, date_trunc('second', clock_timestamp())), next_at = clock_timestamp() WHERE id = $1`, p.ID)
}

// giveUp ends an attempt with an expired lease, as the reaper does.
func (b *bundle) giveUp(t testing.TB, c booking.Claim, became push.Status) {
	t.Helper()
	b.Exec(t, `UPDATE live SET next_at = clock_timestamp() WHERE push_id = $1 AND attempts = $2`, c.Push.ID, c.Attempt)
	b.MustFinish(t, c, booking.Finish{Outcome: push.Unknown, Error: "lost", Reaped: true, Resolution: push.Resolution{Status: became, Reason: "lost"}})
}

// lives are paths through the states, each step by the store's own methods. The push is due at once.
var lives = map[string]func(t *testing.T, b *bundle, p push.Push, step func()){
	"sent, as reported twice": func(t *testing.T, b *bundle, p push.Push, step func()) {
		c := b.Claimed(t, p)
		step()
		f := storetest.Sent
		f.Handed = time.Millisecond
		b.MustFinish(t, c, f)
		step()
		b.MustFinish(t, c, f)
	},
	"refused, tried again, refused for good": func(t *testing.T, b *bundle, p push.Push, step func()) {
		b.MustFinish(t, b.Claimed(t, p), storetest.TryAgain)
		step()
		b.MustFinish(t, b.Claimed(t, p), storetest.GaveUp)
	},
	"unknown, canceled": func(t *testing.T, b *bundle, p push.Push, step func()) {
		b.MustFinish(t, b.Claimed(t, p), storetest.LostTrack)
		step()
		b.MustCancel(t, p)
	},
	"unknown, moved, sent": func(t *testing.T, b *bundle, p push.Push, step func()) {
		b.MustFinish(t, b.Claimed(t, p), storetest.LostTrack)
		b.postpone(t, p, time.Hour)
		step()
		b.ready(t, p)
		b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
	},
	"lost, moved, and delivered after all": func(t *testing.T, b *bundle, p push.Push, step func()) {
		c := b.Claimed(t, p)
		b.giveUp(t, c, push.Scheduled)
		step()
		b.postpone(t, p, time.Hour)
		step()
		b.MustFinish(t, c, storetest.Sent)
		b.WantStatus(t, p, push.Sent)
	},
	"lost, refused, moved, and the lost one delivered after all": func(t *testing.T, b *bundle, p push.Push, step func()) {
		c := b.Claimed(t, p)
		b.giveUp(t, c, push.Scheduled)
		b.MustFinish(t, b.Claimed(t, p), storetest.TryAgain)
		b.postpone(t, p, time.Hour)
		step()
		b.MustFinish(t, c, storetest.Sent)
		b.WantStatus(t, p, push.Sent)
	},
	"lost, and delivered after all while the next one is under way, which fails": func(t *testing.T, b *bundle, p push.Push, step func()) {
		first := b.Claimed(t, p)
		b.giveUp(t, first, push.Scheduled)
		second := b.Claimed(t, p)
		b.MustFinish(t, first, storetest.Sent)
		step()
		b.MustFinish(t, second, storetest.GaveUp)
		b.WantStatus(t, p, push.Sent)
	},
	"lost, and delivered twice": func(t *testing.T, b *bundle, p push.Push, step func()) {
		first := b.Claimed(t, p)
		b.giveUp(t, first, push.Scheduled)
		second := b.Claimed(t, p)
		b.MustFinish(t, first, storetest.Sent)
		b.MustFinish(t, second, storetest.Sent)
	},
	"lost, failed, and delivered after all": func(t *testing.T, b *bundle, p push.Push, step func()) {
		c := b.Claimed(t, p)
		b.giveUp(t, c, push.Failed)
		step()
		b.MustFinish(t, c, storetest.Sent)
	},
	"lost, canceled, and delivered after all": func(t *testing.T, b *bundle, p push.Push, step func()) {
		c := b.Claimed(t, p)
		b.giveUp(t, c, push.Scheduled)
		b.MustCancel(t, p)
		step()
		f := storetest.Sent
		f.Handed = time.Microsecond
		b.MustFinish(t, c, f)
	},
	"unknown, expired": func(t *testing.T, b *bundle, p push.Push, step func()) {
		b.MustFinish(t, b.Claimed(t, p), storetest.LostTrack)
		b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, p.ID)
		step()
		if ended, err := b.Expire(t.Context(), push.Lanes(1), 10); err != nil || len(ended) != 1 {
			t.Fatal(ended, err)
		}
	},
	"too late when claimed": func(t *testing.T, b *bundle, p push.Push, step func()) {
		b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, p.ID)
		step()
		b.MustClaim(t, p.Recipient, storetest.PerMinute)
		b.WantStatus(t, p, push.Expired)
	},
	"put off by what was sent before, and moved": func(t *testing.T, b *bundle, p push.Push, step func()) {
		b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
		later := storetest.MustBook(t, b.Store, storetest.PerMinute, storetest.Draft(b.TenantID, p.Recipient, p.SendAt.Sub(storetest.Began)+time.Minute)).Push
		b.Exec(t, `UPDATE pushes SET send_at = send_at - interval '2 minutes', next_at = next_at - interval '2 minutes' WHERE recipient = $1`, p.Recipient) // as if both were late
		if c := b.MustClaim(t, p.Recipient, storetest.PerMinute); c.Outcome != booking.PutOff {
			t.Fatalf("%+v", c)
		}
		step()
		b.postpone(t, later, 3*time.Hour)
		step()
		b.MustCancel(t, later)
	},
}

// legal accepts no findings but windows: retries passed the gate at once.
func legal(t *testing.T, life string, findings []audit.Finding) {
	t.Helper()
	for _, f := range findings {
		if f.Check != "actual-window" {
			t.Errorf("%s: %+v", life, f)
		}
	}
}

// TestAudit_NoFindings checks that the audit finds nothing in any state that the store can produce.
func TestAudit_NoFindings(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	step := func(life string) func() {
		return func() {
			t.Helper()
			from, chunks := []time.Time{{}, storetest.Began.Add(-time.Minute), time.Now()}, []int{2, 1000}
			if testing.Short() {
				from, chunks = from[:1], chunks[:1]
			}
			for _, since := range from {
				findings, err := b.Audit(t.Context(), storetest.PerMinute, since)
				if err != nil {
					t.Fatal(err)
				}
				legal(t, life, findings)
			}
			for _, rows := range chunks {
				legal(t, life, storetest.FinishAudit(t, b.beginAudit(t, storetest.PerMinute, rows)))
			}
		}
	}
	for life, live := range lives {
		p := b.Booked(t, life, time.Since(storetest.Began).Truncate(time.Second))
		step(life)()
		live(t, b, p, step(life))
		step(life)()
	}
	for _, policy := range []quota.Policy{nil, {{Name: "three", Limit: 3, Window: time.Minute}}} {
		b.MustAudit(t, policy)
	}
}

// TestAudit_NoFindingsUnderLoad audits in a loop while claims pass the gate, attempts end in every way, some are lost,
// and some answers come late.
func TestAudit_NoFindingsUnderLoad(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	policy := quota.Policy{{Name: "a", Limit: 1, Window: 20 * time.Millisecond}, {Name: "b", Limit: 3, Window: 100 * time.Millisecond}}
	o := booking.Order{}
	for i := range 40 {
		o.Drafts = append(o.Drafts, storetest.Draft(b.TenantID, fmt.Sprint("recipient ", i%4), time.Since(storetest.Began).Truncate(time.Second)))
	}
	if _, err := b.Book(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var keys []int64 // where chunks begin
	for i := range 4 {
		keys = append(keys, push.RecipientKey(b.TenantID, fmt.Sprint("recipient ", i)))
	}
	slices.Sort(keys)
	var (
		workers sync.WaitGroup
		reaper  sync.Mutex
	)
	for i := range 8 {
		workers.Go(func() {
			recipient := fmt.Sprint("recipient ", i%4)
			for b.MustDue(t, push.RecipientKey(b.TenantID, recipient)) {
				switch c := b.MustClaim(t, recipient, policy); c.Outcome {
				case booking.Wait:
					time.Sleep(c.Wait) // as the claim asks; an earlier try would get the same answer
				case booking.Claimed:
					b.endSomehow(t, c, &reaper)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	for audits, over := 0, false; !over; audits++ {
		select {
		case <-done:
			over = true // and audit once more
		default:
		}
		p := b.AuditSince(policy, booking.Kept{}, storetest.Began.Add(-time.Hour*time.Duration(audits%4/2)))
		if audits%2 == 1 { // as the workers do
			p = b.beginAudit(t, policy, 0)
		}
		p.CutAt(keys[:audits%5])
		for _, f := range storetest.FinishAudit(t, p) {
			if f.Check != "promised-window" { // they were booked without a policy
				t.Errorf("audit %d: %+v", audits, f)
			}
		}
	}
}

// endSomehow ends an attempt in a random way, after a moment. There is one reaper.
func (b *bundle) endSomehow(t *testing.T, c booking.Claim, reaper *sync.Mutex) {
	time.Sleep(time.Duration(1000+rand.N(2000)) * time.Microsecond) // an attempt takes time, so that audits see it under way
	end := []booking.Finish{storetest.Sent, storetest.Sent, storetest.TryAgain, storetest.GaveUp, storetest.LostTrack, {}}[rand.N(6)]
	if end.Outcome != "" {
		end.Handed = time.Duration(rand.N(2)) * time.Millisecond
		b.MustFinish(t, c, end)
		return
	}
	reaper.Lock()
	b.giveUp(t, c, push.Scheduled)
	reaper.Unlock()
	b.MustFinish(t, c, []booking.Finish{storetest.Sent, storetest.TryAgain, storetest.LostTrack}[rand.N(3)])
}
