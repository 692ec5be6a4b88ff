package pushes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// change holds an operation of a tenant on a waiting push, and the error that it returns if it comes too late.
type change struct {
	do     func(b *bundle, st *store.Store, p push.Push) error
	late   error
	undoes func(push.Push) bool // whether a push shows that it was done
}

var (
	cancel = change{
		do: func(b *bundle, st *store.Store, p push.Push) error {
			_, err := st.Cancel(context.Background(), p.Tenant, p.ID)
			return err
		},
		late:   push.ErrNotCancelable,
		undoes: func(p push.Push) bool { return p.Status == push.Canceled && len(p.Sends) == 0 },
	}
	move = change{
		do: func(b *bundle, st *store.Store, p push.Push) error {
			return b.Move(st, p, storetest.Began.Add(time.Hour))
		},
		late: push.ErrNotReschedulable,
		undoes: func(p push.Push) bool {
			return p.SendAt.Equal(storetest.Began.Add(time.Hour)) && p.NextAt.Equal(p.SendAt) && len(p.Sends) == 0
		},
	}
)

// TestChange_BesideClaim races a cancel or move with a claim. Either the change is confirmed or the push is claimed,
// never both, and each of them wins some races.
func TestChange_BesideClaim(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]change{"cancel": cancel, "move": move} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var workers [8]*store.Store // in turn, since a store pauses after a claim
			for i := range workers {
				workers[i] = storetest.OpenURL(t, b.URL, store.Config{})
			}
			confirmed, claimed := 0, 0
			for try := 0; confirmed < 5 || claimed < 5; try++ {
				if try == 2000 {
					t.Fatalf("in %d races %d changes and %d claims won: nothing was tested", try, confirmed, claimed)
				}
				p := b.Booked(t, uuid.NewString(), 0)
				var (
					wg  sync.WaitGroup
					c   booking.Claim
					err error
				)
				wg.Go(func() { c = claimAgain(t, workers[try%len(workers)], p) })
				wg.Go(func() { err = change.do(b, b.Store, p) })
				wg.Wait()
				after := b.MustRead(t, p)
				switch {
				case err == nil && c.Outcome == booking.Nothing && change.undoes(after):
					confirmed++
				case errors.Is(err, change.late) && c.Outcome == booking.Claimed && after.Status == push.Sending && !change.undoes(after):
					claimed++
				default:
					t.Fatalf("change: %v, claim: %+v, push: %+v", err, c, after)
				}
			}
		})
	}
}

// claimAgain claims until the outcome is final.
func claimAgain(t *testing.T, st *store.Store, p push.Push) booking.Claim {
	for {
		c, err := st.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(p.Tenant, p.Recipient), Lease: time.Minute})
		if err != nil || c.Outcome != booking.Again && c.Outcome != booking.Wait { // the change has the lock
			if err != nil {
				t.Error(err)
			}
			return c
		}
	}
}

// TestClaim_BesideCancel cancels a push after a claim has read it and before the claim writes.
func TestClaim_BesideCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	b.Exec(t, `BEGIN`)
	b.Exec(t, `UPDATE pushes SET status = 'canceled', plan = plan + 1 WHERE id = $1`, p.ID)
	claims := make(chan booking.Claim, 1)
	go func() { claims <- b.MustClaim(t, "anna", nil) }()
	b.Waiting(t, 1)
	b.Exec(t, `COMMIT`)
	if c := <-claims; c.Outcome != booking.Again {
		t.Errorf("%+v", c)
	}
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Nothing {
		t.Errorf("then %+v", c)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT (SELECT count(*) FROM sends WHERE push_id = $1) + (SELECT count(*) FROM live WHERE push_id = $1 AND token IS NOT NULL)`, p.ID); n != 0 {
		t.Errorf("%d attempts were opened", n)
	}
}

// TestReschedule_BesideCancel checks that a move that waits for the row of a push finds the push canceled.
func TestReschedule_BesideCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", time.Minute)
	b.Exec(t, `BEGIN`)
	b.Exec(t, `UPDATE pushes SET status = 'canceled', plan = plan + 1 WHERE id = $1`, p.ID)
	moved := make(chan error, 1)
	go func() { moved <- b.Move(b.Store, p, storetest.Began.Add(time.Hour)) }()
	b.Waiting(t, 1)
	b.Exec(t, `COMMIT`)
	if err := <-moved; !errors.Is(err, push.ErrNotReschedulable) {
		t.Errorf("%v", err)
	}
	if got := b.MustRead(t, p); got.Status != push.Canceled || !got.SendAt.Equal(p.SendAt) {
		t.Errorf("%+v", got)
	}
}

// TestChange_ByState checks the states that allow a cancel, and those that allow a move.
func TestChange_ByState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, status := range push.Statuses {
		for name, change := range map[string]change{"cancel": cancel, "move": move} {
			p := b.InStatus(t, name+string(status), status)
			err := change.do(b, b.Store, p)
			possible := status == push.Scheduled || name == "cancel" && status == push.Canceled // a second cancel succeeds, too
			if possible != (err == nil) || !possible && !errors.Is(err, change.late) {
				t.Errorf("%s one that is %s: %v", name, status, err)
			}
			if !possible && b.MustRead(t, p).Gen != p.Gen {
				t.Errorf("%s changed one that is %s", name, status)
			}
			p.Tenant = uuid.New()
			if err := change.do(b, b.Store, p); !errors.Is(err, push.ErrNotFound) {
				t.Errorf("another tenant's %s: %v", name, err)
			}
		}
	}
}

// TestReschedule_MovesExpiry checks that the expiry moves with the send time, and that the push's own booking does not
// count against the new time.
func TestReschedule_MovesExpiry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", time.Hour)
	b.Booked(t, "anna", 3*time.Hour)
	reschedule := func(to time.Duration, want booking.Outcome) push.Push {
		t.Helper()
		p.SendAt, p.RequestedSendAt = storetest.Began.Add(to), storetest.Began.Add(to)
		v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: storetest.ThreeRules})
		if err != nil || v.Outcome != want {
			t.Fatalf("%+v, %v", v, err)
		}
		return b.MustRead(t, p)
	}
	near := reschedule(time.Hour+30*time.Second, booking.Booked)
	if want := near.SendAt.Add(24 * time.Hour); !near.SendAt.Equal(storetest.Began.Add(time.Hour+30*time.Second)) || !near.ExpiresAt.Equal(want) || !near.RequestedSendAt.Equal(near.SendAt) || near.Gen != 2 || !near.CreatedAt.Equal(p.CreatedAt) {
		t.Errorf("moved: %+v", near)
	}
	if kept := reschedule(3*time.Hour+30*time.Second, booking.NoPlace); !kept.SendAt.Equal(near.SendAt) || kept.Gen != near.Gen {
		t.Errorf("refused: %+v", kept)
	}
	reschedule(5*time.Hour, booking.Booked)
	b.MustAudit(t, storetest.ThreeRules)
}
