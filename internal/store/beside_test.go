package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// program is what a program of either release does.
type program interface {
	book(ctx context.Context, recipient string, at, expires time.Time) (uuid.UUID, error)
	claim(ctx context.Context, recipient string, lease time.Duration) (attemptOf, error)
	finish(ctx context.Context, a attemptOf, outcome push.Outcome, status push.Status, reaped bool) (ended bool, err error)
	cancel(ctx context.Context, id uuid.UUID) (canceled bool, err error)
	move(ctx context.Context, id uuid.UUID, recipient string, to time.Time) error
	expire(ctx context.Context) error
	reap(ctx context.Context) error
}

// newer is a program of this release.
type newer struct {
	*store.Store
	tenant uuid.UUID
}

func (n newer) book(ctx context.Context, recipient string, at, expires time.Time) (uuid.UUID, error) {
	d := draft(n.tenant, recipient, 0)
	d.Push.SendAt, d.Push.RequestedSendAt, d.Push.TTL, d.Push.ExpiresAt, d.Push.Bulk = at, at, expires.Sub(at), expires, d.Push.ID[14]%2 == 0
	v, err := n.Book(ctx, booking.Order{Drafts: []booking.Draft{d}})
	if err == nil && v[0].Outcome != booking.Booked {
		err = fmt.Errorf("%+v", v[0])
	}
	return d.Push.ID, err
}

func (n newer) claim(ctx context.Context, recipient string, lease time.Duration) (attemptOf, error) {
	c, err := n.Claim(ctx, booking.ClaimOrder{RecipientKey: push.RecipientKey(n.tenant, recipient), Lease: lease})
	if err != nil || c.Outcome != booking.Claimed {
		return attemptOf{}, err
	}
	return attemptOf{c.Push.ID, c.Token, c.Attempt, c.Attempted()}, nil
}

func (n newer) finish(ctx context.Context, a attemptOf, outcome push.Outcome, status push.Status, reaped bool) (bool, error) {
	f := booking.Finish{Attempt: a.newer, Outcome: outcome, Reaped: reaped, Resolution: push.Resolution{Status: status}}
	if status != push.Sent {
		f.Error, f.Resolution.Reason = "the reason", "the reason"
	}
	_, err := n.Finish(ctx, f)
	return true, err
}

func (n newer) cancel(ctx context.Context, id uuid.UUID) (bool, error) {
	_, err := n.Cancel(ctx, n.tenant, id)
	if errors.Is(err, push.ErrNotCancelable) {
		return false, nil
	}
	return err == nil, err
}

func (n newer) move(ctx context.Context, id uuid.UUID, recipient string, to time.Time) error {
	p := push.Push{ID: id, Tenant: n.tenant, Recipient: recipient, RequestedSendAt: to, SendAt: to, TTL: time.Hour}
	_, err := n.Reschedule(ctx, booking.Order{Drafts: []booking.Draft{{Push: p}}})
	if errors.Is(err, push.ErrNotReschedulable) {
		return nil
	}
	return err
}

func (n newer) expire(ctx context.Context) error {
	_, err := n.Expire(ctx, push.Lanes(1), 100)
	return err
}

func (n newer) reap(ctx context.Context) error {
	lost, err := n.Lost(ctx, push.Lanes(1), 100)
	for _, l := range lost {
		if err == nil {
			_, err = n.finish(ctx, attemptOf{l.Push, l.Token, l.Number, l.Attempt}, push.Unknown, push.Scheduled, true)
		}
	}
	return err
}

// beside has programs of two releases work on the same pushes, and knows what a provider would.
type beside struct {
	*bundle
	recipients int

	mu       sync.Mutex
	ids      []uuid.UUID
	of       map[uuid.UUID]string    // whose push it is
	busy     map[string]uuid.UUID    // recipients for whom an attempt is under way
	got      map[uuid.UUID]int       // how often the provider has taken it
	canceled map[uuid.UUID]time.Time // as callers were told
	done     map[string]int          // what was done
}

func setupBeside(t *testing.T, recipients int) *beside {
	t.Helper()
	url := testenv.Postgres(t)
	b := &beside{bundle: &bundle{url: url, db: connect(t, url), watch: connect(t, url), tenant: uuid.New()}, recipients: recipients,
		of: map[uuid.UUID]string{}, busy: map[string]uuid.UUID{}, got: map[uuid.UUID]int{}, canceled: map[uuid.UUID]time.Time{}, done: map[string]int{}}
	b.exec(t, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	if _, err := store.Migrate(t.Context(), url, store.MigrateConfig{Files: before(t, "0009")}); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'tenant')`, b.tenant)
	return b
}

func (b *beside) older(t *testing.T) older {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), b.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return older{pool, b.tenant}
}

func (b *beside) newer(t *testing.T) newer {
	t.Helper()
	b.Store = openURL(t, b.url, store.Config{})
	return newer{b.Store, b.tenant}
}

// work does one thing or another.
func (b *beside) work(ctx context.Context, p program) (what string, err error) {
	recipient := fmt.Sprint("r", rand.IntN(b.recipients))
	switch n := rand.IntN(20); {
	case n < 6:
		at := time.Now().UTC().Truncate(time.Second)
		if n == 0 {
			at = at.Add(time.Duration(1+rand.IntN(3)) * time.Second)
		}
		expires := at.Add(time.Hour)
		if n == 1 {
			expires = at.Add(time.Second)
		}
		id, err := p.book(ctx, recipient, at, expires)
		if err == nil {
			b.note(id, recipient)
		}
		return "book", err
	case n < 14:
		return b.attempt(ctx, p, recipient)
	case n < 16:
		return b.drop(ctx, p)
	case n < 18:
		id, recipient := b.any()
		if id == uuid.Nil {
			return "", nil
		}
		return "move", p.move(ctx, id, recipient, time.Now().UTC().Truncate(time.Second).Add(time.Duration(rand.IntN(3))*time.Second))
	case n < 19:
		return "expire", p.expire(ctx)
	default:
		return "reap", p.reap(ctx)
	}
}

func (b *beside) note(id uuid.UUID, recipient string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids, b.of[id] = append(b.ids, id), recipient
}

// any is one of the pushes that were booked last, and its recipient.
func (b *beside) any() (id uuid.UUID, recipient string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ids) > 0 {
		id = b.ids[len(b.ids)-1-rand.IntN(min(len(b.ids), 100))]
	}
	return id, b.of[id]
}

func (b *beside) drop(ctx context.Context, p program) (string, error) {
	id, _ := b.any()
	if id == uuid.Nil {
		return "", nil
	}
	canceled, err := p.cancel(ctx, id)
	if err != nil || !canceled {
		return "cancel in vain", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.canceled[id] = time.Now()
	if b.got[id] > 0 || b.busy[b.of[id]] == id {
		err = fmt.Errorf("%s is canceled, and was sent %d times", id, b.got[id])
	}
	return "cancel", err
}

// attempt claims, sends and finishes. One worker in ten dies instead.
func (b *beside) attempt(ctx context.Context, p program, recipient string) (string, error) {
	dies, lease := rand.IntN(10) == 0, time.Hour
	if dies {
		lease = 50 * time.Millisecond
	}
	a, err := p.claim(ctx, recipient, lease)
	if err != nil || a.push == uuid.Nil {
		return "claim nothing", err
	}
	if dies {
		return "die", nil
	}
	outcome, status := push.Delivered, push.Sent
	switch rand.IntN(6) {
	case 0:
		outcome, status = push.Refused, push.Scheduled
	case 1:
		outcome, status = push.Refused, push.Failed
	}
	b.mu.Lock()
	other, busy := b.busy[recipient]
	canceled := b.canceled[a.push]
	b.busy[recipient] = a.push
	if outcome == push.Delivered {
		b.got[a.push]++
	}
	again := b.got[a.push] > 1
	b.mu.Unlock()
	switch {
	case busy:
		return "", fmt.Errorf("%s is sent while %s is, to the same recipient", a.push, other)
	case !canceled.IsZero():
		return "", fmt.Errorf("%s is sent, and was canceled", a.push)
	case again:
		return "", fmt.Errorf("%s is sent again", a.push)
	}
	time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
	b.mu.Lock()
	delete(b.busy, recipient)
	b.mu.Unlock()
	ended, err := p.finish(ctx, a, outcome, status, false)
	if err == nil && !ended {
		err = fmt.Errorf("the attempt %+v was ended by another program", a)
	}
	return "send: " + string(status), err
}

// start has a program work in several goroutines. stop waits until they have ended.
func (b *beside) start(t *testing.T, name string, p program, goroutines int) (did func(n int), stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var n atomic.Int64
	for range goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				what, err := b.work(t.Context(), p)
				if err != nil {
					t.Errorf("%s: %s: %v", name, what, err)
					return
				}
				b.mu.Lock()
				b.done[name+": "+what]++
				b.mu.Unlock()
				n.Add(1)
			}
		})
	}
	did = func(more int) {
		t.Helper()
		from := n.Load()
		eventually(t, name+" goes on", func() bool { return n.Load() >= from+int64(more) || t.Failed() })
	}
	return did, func() { cancel(); all.Wait() }
}

// drain sends what is left, and wants every push to have ended once.
func (b *beside) drain(t *testing.T, p program) {
	t.Helper()
	eventually(t, "all pushes end", func() bool {
		err := errors.Join(p.reap(t.Context()), p.expire(t.Context()))
		for _, recipient := range slices.Compact(slices.Sorted(maps.Values(b.of))) {
			for err == nil {
				var a attemptOf
				if a, err = p.claim(t.Context(), recipient, time.Hour); a.push == uuid.Nil {
					break
				}
				b.got[a.push]++
				if err == nil {
					_, err = p.finish(t.Context(), a, push.Delivered, push.Sent, false)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return ask[int](t, b.db, `SELECT count(*) FROM pushes WHERE status IN ('scheduled', 'sending')`) == 0
	})
	rows, _ := b.db.Query(t.Context(), `SELECT id, status FROM pushes`)
	pushes := 0
	for rows.Next() {
		var (
			id     uuid.UUID
			status push.Status
		)
		if err := rows.Scan((*[16]byte)(&id), (*string)(&status)); err != nil {
			t.Fatal(err)
		}
		pushes++
		if _, canceled := b.canceled[id]; (status == push.Sent) != (b.got[id] > 0) || b.got[id] > 1 || canceled != (status == push.Canceled) {
			t.Errorf("%s is %s, the provider got it %d times, and it was canceled: %v", id, status, b.got[id], canceled)
		}
	}
	if pushes != len(b.of) {
		t.Errorf("%d pushes, of %d", pushes, len(b.of))
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM live`); n > 0 {
		t.Errorf("%d rows are left in live", n)
	}
	b.audit(t, nil)
	t.Log(pushes, b.done)
}

// bothForms counts the pushes of which the forms of the two releases say different things.
const bothForms = `
	SELECT count(*) FROM pushes p FULL JOIN live l ON l.push_id = p.id LEFT JOIN sends s ON s.push_id = p.id AND s.ended_at IS NULL
	WHERE (p.status IN ('scheduled', 'sending')) <> (l.push_id IS NOT NULL)
		OR (p.recipient_key, p.send_at, p.expires_at, p.plan, p.attempts, coalesce(p.lease_until, p.next_at)) <> (l.recipient_key, l.send_at, l.expires_at, l.plan, l.attempts, l.next_at)
		OR (p.claim_token, s.attempt, s.lease_until, s.started_at) IS DISTINCT FROM (l.token, CASE WHEN l.phase = 2 THEN l.attempts END, p.lease_until, l.started_at)
		OR p.plan > 0 AND p.freed <> (p.status IN ('failed', 'canceled', 'expired'))`

// TestMigrate_Beside: programs of the release before and of this one work on the same pushes, while the schema changes
// under them in all its steps. Each push ends once, is sent at most once, and not after it was canceled; no two attempts
// of a recipient are under way at once; and the audit finds nothing.
func TestMigrate_Beside(t *testing.T) {
	t.Parallel()
	b := setupBeside(t, 60)
	before, stopBefore := b.start(t, "older", b.older(t), 3)
	before(1000)
	if applied, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute}); err != nil || !slices.Contains(applied, "0009_live.sql") {
		t.Fatalf("applied %v, %v", applied, err)
	}
	now, stopNow := b.start(t, "newer", b.newer(t), 3)
	for range 6 {
		before(80)
		now(80)
		if n := ask[int](t, b.db, bothForms); n > 0 {
			t.Fatalf("of %d pushes the two forms differ", n)
		}
		b.audit(t, nil)
		if found := finishAudit(t, b.beginAudit(t, nil, 0)); len(found) > 0 {
			t.Errorf("in chunks: %+v", found)
		}
	}
	stopBefore()
	if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute, Contract: true}); err != nil {
		t.Fatal(err)
	}
	now(500)
	b.audit(t, nil)
	stopNow()
	b.drain(t, newer{b.Store, b.tenant})
}
