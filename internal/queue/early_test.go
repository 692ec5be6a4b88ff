package queue_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

type unobserved struct{}

func (unobserved) Attempted(string, string, bool, time.Duration) {}

func (unobserved) Unregistered(string) {}
func (unobserved) PutOff()             {}

// TestServe_EarlyWakeUps: asynq cuts the time of a wake-up to its second, so that those of retries and deferrals come
// up to a second early. What counts is when the attempt begins, by Postgres' clock.
func TestServe_EarlyWakeUps(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	st, err := store.Open(t.Context(), url, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	rdb := client(t, testenv.Redis(t))
	q, log := queue.New(rdb, 2, nil), slog.New(slog.DiscardHandler)
	channels, err := channel.NewSet(channel.Entry{Name: "log", Channel: channel.NewLog(log), Retry: push.Retry{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	worker := delivery.New(st, quota.NewCache(rdb, redisscript.Config{}), channels, log, unobserved{}, delivery.Config{Lease: time.Minute, Concurrency: 5})

	// Five recipients' pushes, whose retries are due at five parts of a second.
	tenant, now := uuid.New(), time.Now().UTC()
	second := now.Truncate(time.Second).Add(2 * time.Second)
	var (
		drafts  []booking.Draft
		wakeUps []push.WakeUp
	)
	for i := range 5 {
		p := push.Push{ID: uuid.New(), Tenant: tenant, Recipient: string(rune('a' + i)), Channel: "log", Message: json.RawMessage(`{}`),
			SendAt: now.Truncate(time.Second), RequestedSendAt: now.Truncate(time.Second), TTL: time.Hour}
		drafts = append(drafts, booking.Draft{Push: p})
		wakeUps = append(wakeUps, push.WakeUp{Push: p.ID, Gen: 1, RecipientKey: push.RecipientKey(tenant, p.Recipient), At: second.Add(time.Duration(i+5) * 99 * time.Millisecond)})
		wakeUps[i].In = time.Until(wakeUps[i].At)
	}
	if _, err := st.Book(t.Context(), booking.Order{Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	for _, w := range wakeUps {
		testenv.Exec(t, url, `UPDATE pushes SET next_at = $2 WHERE id = $1`, w.Push, w.At)
	}

	var (
		mu    sync.Mutex
		early = 0
	)
	handled := make(chan struct{}, 10)
	serve(t, q, func(ctx context.Context, w push.WakeUp) error {
		mu.Lock()
		if time.Now().Before(w.At) {
			early++
		}
		mu.Unlock()
		defer func() { handled <- struct{}{} }()
		return worker.Handle(ctx, w)
	})
	arm(t, q, wakeUps...)
	for range wakeUps {
		<-handled
	}
	for i, draft := range drafts {
		p, err := st.Push(t.Context(), tenant, draft.Push.ID)
		for ; err == nil && p.Status != push.Sent; p, err = st.Push(t.Context(), tenant, draft.Push.ID) { // the worker waits for it
			time.Sleep(time.Millisecond)
		}
		if err != nil || len(p.Sends) != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		if late := p.Sends[0].StartedAt.Sub(wakeUps[i].At); late < 0 {
			t.Errorf("due at %s, it was sent %s before", wakeUps[i].At, -late)
		}
	}
	if early == 0 {
		t.Error("no wake-up came early: nothing was tested")
	}
}
