package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
)

const lease = time.Minute

// scripted is a store with scripted answers.
type scripted struct {
	noOwn
	claims   []booking.Claim // one after another, then nothing
	slow     time.Duration   // how long a claim takes
	failures int             // of Finish, before it succeeds
	failure  error
	more     bool
	paused   bool  // while a claim was under way
	unread   error // of PausedNow
	asked    int   // calls of PausedNow

	from     time.Time // since when a push is due
	looked   bool
	finished []booking.Finish
	at       []time.Time
}

// Due returns a due push from then on, once.
func (s *scripted) Due(_ context.Context, o booking.DueOrder) ([]booking.Due, time.Time, error) {
	if s.looked || len(o.Channels) == 0 || time.Now().Before(s.from) {
		return nil, time.Now(), nil
	}
	s.looked = true
	return []booking.Due{{RecipientKey: 1, Channel: "log"}}, time.Now(), nil
}

func (s *scripted) ClaimAll(ctx context.Context, orders []booking.ClaimOrder) ([]booking.Claim, error) {
	c, err := s.Claim(ctx, orders[0])
	return []booking.Claim{c}, err
}

func (s *scripted) Claim(context.Context, booking.ClaimOrder) (booking.Claim, error) {
	if len(s.claims) == 0 {
		return booking.Claim{}, nil
	}
	c := s.claims[0]
	s.claims = s.claims[1:]
	if c.Outcome == booking.Claimed {
		c.StartedAt, c.LeaseUntil = time.Now(), time.Now().Add(lease)
	}
	time.Sleep(s.slow)
	return c, nil
}

// PausedNow answers as scripted, and counts.
func (s *scripted) PausedNow(context.Context, push.Push) (bool, error) {
	s.asked++
	return s.paused, s.unread
}

func (s *scripted) Finish(_ context.Context, f booking.Finish) (bool, error) {
	s.finished, s.at = append(s.finished, f), append(s.at, time.Now())
	if s.failures--; s.failures >= 0 {
		return false, s.failure
	}
	return s.more, nil
}

// claimed returns a claim of a push that expires in an hour.
func claimed() booking.Claim {
	return booking.Claim{Outcome: booking.Claimed, Token: uuid.New(), Attempt: 1, Push: push.Push{Content: push.Content{Channel: "log"}, ID: uuid.New(), ExpiresAt: time.Now().Add(time.Hour)}}
}

// handle makes the worker send due pushes, and waits for the attempts.
func handle(t *testing.T, w *delivery.Worker) {
	t.Helper()
	if err := w.Handle(t.Context(), push.WakeUp{Lane: all}); err != nil {
		t.Error(err)
	}
	w.Settle()
}

func setupScripted(t *testing.T, s *scripted, p *provider) *delivery.Worker {
	t.Helper()
	return setupStore(t, s, p)
}

func setupStore(t *testing.T, s delivery.Store, p *provider) *delivery.Worker {
	t.Helper()
	return delivery.New(s, quota.NewCache(nil, redisscript.Config{}), channels(t, p), &wakes{}, quiet, &metrics{}, delivery.Config{Lease: lease, Concurrency: 1})
}

// A worker that was held up for a quarter of its lease sends nothing, because the rest of the lease may be too short to
// end and record an attempt.
func TestWorker_HeldUp(t *testing.T) {
	for name, row := range map[string]struct {
		slow  time.Duration
		sends int
	}{"just in time": {lease / 4, 1}, "too late": {lease/4 + 1, 0}, "far too late": {10 * lease, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := &scripted{claims: []booking.Claim{claimed()}, slow: row.slow}, &provider{}
				handle(t, setupScripted(t, s, p))
				if len(p.took) != row.sends || len(s.finished) != 1 {
					t.Fatalf("sent %d, finished %+v", len(p.took), s.finished)
				}
				if f := s.finished[0]; row.sends == 0 && (f.Outcome != push.Refused || f.Resolution.Status != push.Scheduled || f.Error == "") {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

// The channel has half of the lease, however long the claim took.
func TestWorker_SendTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &scripted{claims: []booking.Claim{claimed()}, slow: 10 * time.Second}
		p := &provider{answer: func(ctx context.Context, _ push.Push, _ int) channel.Result {
			<-ctx.Done()
			return channel.Result{Outcome: push.Unknown, Error: "timeout"}
		}}
		handle(t, setupScripted(t, s, p))
		if took := time.Since(began); took != 10*time.Second+lease/2 {
			t.Errorf("it had %s", took)
		}
	})
}

// A worker that stops finishes its attempts.
func TestWorker_StopsAfterAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := &scripted{claims: []booking.Claim{claimed()}, failures: 2, failure: push.ErrUnavailable}
		p := &provider{answer: func(ctx context.Context, _ push.Push, _ int) channel.Result {
			stop()
			time.Sleep(time.Second)
			if ctx.Err() != nil {
				t.Error("the send was cut off")
			}
			return channel.Result{Outcome: push.Delivered}
		}}
		w := setupScripted(t, s, p)
		stopped := make(chan error)
		go func() { stopped <- w.Run(ctx) }()
		if err := w.Handle(t.Context(), push.WakeUp{Lane: all}); err != nil && !errors.As(err, new(push.ComeAgain)) {
			t.Error(err)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if len(s.finished) != 3 {
			t.Errorf("%d finishes", len(s.finished))
		}
	})
}

// While Postgres is away, a finish is repeated unchanged until the lease ends.
func TestWorker_RepeatsFinish(t *testing.T) {
	away, other := fmt.Errorf("%w: refused", push.ErrUnavailable), errors.New("another error")
	for name, row := range map[string]struct {
		failures int
		failure  error
		finishes int
	}{
		"at once":          {0, nil, 1},
		"the fifth time":   {4, away, 5},
		"for too long":     {1000, away, 41},
		"what is no use":   {1000, other, 1},
		"never after that": {1, other, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s, p := &scripted{claims: []booking.Claim{claimed()}, failures: row.failures, failure: row.failure}, &provider{}
				handle(t, setupScripted(t, s, p))
				if len(s.finished) != row.finishes || len(p.took) != 1 {
					t.Errorf("%d finishes, %d sends", len(s.finished), len(p.took))
				}
				for _, f := range s.finished {
					if diff := cmp.Diff(s.finished[0], f); diff != "" {
						t.Error(diff)
					}
				}
				if took := time.Since(began); took > lease {
					t.Errorf("it took %s, and the lease is long over", took)
				}
			})
		})
	}
}

// A worker continues, over a delay, while the recipient has more to send.
func TestWorker_HandlesAllOfRecipient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &scripted{more: true, claims: []booking.Claim{
			{Outcome: booking.Again}, {Outcome: booking.PutOff}, {Outcome: booking.Wait, Wait: time.Second}, claimed(), claimed(),
		}}
		p := &provider{}
		handle(t, setupScripted(t, s, p))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(p.took) != 2 || p.took[0].at.Sub(began) != time.Second+booking.LockWait {
			t.Errorf("sent %+v", p.took)
		}
	})
}

// A message that contains the time of its sending is rendered when it is sent, in the zone of the recipient. If it
// cannot be rendered, the push is refused. In synctest it is midnight in UTC, on the first day of 2000.
func TestWorker_MessageOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := claimed(), claimed()
		first.Push.Rendering = json.RawMessage(`{"message":{"body":"{{ name }} {{ 'now' | date: '%F %H:%M' }}"},"known":[{"name":"x"},null,{"name":"Anna"}],"zone":"Asia/Tokyo"}`)
		second.Push.Rendering = json.RawMessage(`{"message":{"body":"{{ nick }}"},"zone":"UTC"}`)
		s, p := &scripted{more: true, claims: []booking.Claim{first, second}, slow: time.Second}, &provider{}
		handle(t, setupScripted(t, s, p))
		if len(p.took) != 1 || string(p.took[0].push.Message) != `{"body":"Anna 2000-01-01 09:00"}` {
			t.Errorf("%+v", p.took)
		}
		if len(s.finished) != 2 || !strings.Contains(s.finished[1].Error, "there is no variable nick") {
			t.Errorf("%+v", s.finished)
		}
	})
}

// A worker does not ask again if a finish reports no other push of the recipient.
func TestWorker_StopsWhenNoneIsLeft(t *testing.T) {
	s, p := &scripted{claims: []booking.Claim{claimed(), claimed()}}, &provider{}
	if handle(t, setupScripted(t, s, p)); len(p.took) != 1 {
		t.Errorf("%d sends", len(p.took))
	}
}
