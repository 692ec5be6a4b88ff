package pushes_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestBook_Retry checks that one of several retries with the same latest retry is booked, whoever asks and however many
// at once.
func TestBook_Retry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.GaveUp)
	p = b.MustRead(t, p)

	asked, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{storetest.RetryOf(p, uuid.Nil, 0)}, DryRun: true})
	if err != nil || asked[0].Outcome != booking.Booked || b.MustRead(t, p).Retry.Latest != uuid.Nil {
		t.Errorf("a question: %+v, %v", asked, err)
	}
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		made []push.Push
	)
	for i := range 16 {
		all.Go(func() {
			v := storetest.MustBook(t, b.Store, nil, storetest.RetryOf(p, uuid.Nil, time.Duration(i)*time.Minute))
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
	if got := b.MustRead(t, made[0]).Retry; got.Of != p.ID || got.First != p.ID || !got.Doubt {
		t.Errorf("the retry has %+v", got)
	}
	got := b.MustRead(t, p)
	if got.Retry.Latest != made[0].ID || got.Status != push.Failed || !got.UpdatedAt.Equal(p.UpdatedAt) {
		t.Errorf("the push became %+v", got)
	}
	if v := storetest.MustBook(t, b.Store, nil, storetest.RetryOf(p, uuid.New(), time.Hour)); v.Outcome != booking.Retried {
		t.Errorf("after another one: %+v", v)
	}
	stranger := p
	stranger.Recipient = "bert"
	if v := storetest.MustBook(t, b.Store, nil, storetest.RetryOf(stranger, made[0].ID, time.Hour)); v.Outcome != booking.Retried {
		t.Errorf("of another recipient: %+v", v)
	}
	b.MustCancel(t, made[0])
	next := storetest.MustBook(t, b.Store, nil, storetest.RetryOf(p, made[0].ID, 0))
	if next.Outcome != booking.Booked {
		t.Fatalf("after the latest one: %+v", next)
	}
	b.MustFinish(t, b.Claimed(t, next.Push), storetest.Sent)
	b.MustAudit(t, nil)
}

// TestBook_RetryCommitUnknown checks that a retry whose commit lost its reply finds its own row when it runs again.
func TestBook_RetryCommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.Booked(t, "anna", 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.GaveUp)
	d := storetest.RetryOf(p, uuid.Nil, 0)
	w.LoseNext("COMMIT")
	v := storetest.MustBook(t, b.Store, nil, d)
	w.WantLost(t, 1)
	if v.Outcome != booking.Booked || v.Push.ID != d.Push.ID || b.MustRead(t, p).Retry.Latest != d.Push.ID {
		t.Errorf("%+v", v)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.TenantID); n != 2 {
		t.Errorf("%d rows", n)
	}
}
