package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// retryOf is a retry of a push, by somebody who has seen that the latest one before it has ended.
func retryOf(first push.Push, latest uuid.UUID, in time.Duration) booking.Draft {
	d := draft(first.Tenant, first.Recipient, in)
	d.Push.Retry, d.Retried = push.RetryLinks{Of: first.ID, First: first.ID, Doubt: true}, &latest
	return d
}

// TestBook_Retry: of retries that know the same latest one, one is booked, whoever asks and however many at once.
func TestBook_Retry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.booked(t, "anna", 0)
	b.finish(t, b.claimed(t, p), gaveUp)
	p = b.read(t, p)

	asked, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{retryOf(p, uuid.Nil, 0)}, DryRun: true})
	if err != nil || asked[0].Outcome != booking.Booked || b.read(t, p).Retry.Latest != uuid.Nil {
		t.Errorf("a question: %+v, %v", asked, err)
	}
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		made []push.Push
	)
	for i := range 16 {
		all.Go(func() {
			v := book(t, b.Store, nil, retryOf(p, uuid.Nil, time.Duration(i)*time.Minute))
			mu.Lock()
			defer mu.Unlock()
			if v.Outcome == booking.Booked {
				made = append(made, v.Push)
			} else if v.Outcome != booking.Retried {
				t.Errorf("%+v", v)
			}
		})
	}
	all.Wait()
	if len(made) != 1 {
		t.Fatalf("%d retries were booked", len(made))
	}
	if got := b.read(t, made[0]).Retry; got.Of != p.ID || got.First != p.ID || !got.Doubt {
		t.Errorf("the retry has %+v", got)
	}
	got := b.read(t, p)
	if got.Retry.Latest != made[0].ID || got.Status != push.Failed || !got.UpdatedAt.Equal(p.UpdatedAt) {
		t.Errorf("the push became %+v", got)
	}
	if v := book(t, b.Store, nil, retryOf(p, uuid.New(), time.Hour)); v.Outcome != booking.Retried {
		t.Errorf("after another one: %+v", v)
	}
	stranger := p
	stranger.Recipient = "bert"
	if v := book(t, b.Store, nil, retryOf(stranger, made[0].ID, time.Hour)); v.Outcome != booking.Retried {
		t.Errorf("of another recipient: %+v", v)
	}
	b.cancel(t, made[0])
	next := book(t, b.Store, nil, retryOf(p, made[0].ID, 0))
	if next.Outcome != booking.Booked {
		t.Fatalf("after the latest one: %+v", next)
	}
	b.finish(t, b.claimed(t, next.Push), sent)
	b.audit(t, nil)
}

// TestBook_RetryCommitUnknown: a retry whose commit gets no reply finds its own row when it runs again.
func TestBook_RetryCommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.booked(t, "anna", 0)
	b.finish(t, b.claimed(t, p), gaveUp)
	d := retryOf(p, uuid.Nil, 0)
	w.loseNext("COMMIT")
	v := book(t, b.Store, nil, d)
	w.wantLost(t, 1)
	if v.Outcome != booking.Booked || v.Push.ID != d.Push.ID || b.read(t, p).Retry.Latest != d.Push.ID {
		t.Errorf("%+v", v)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.tenant); n != 2 {
		t.Errorf("%d rows", n)
	}
}
