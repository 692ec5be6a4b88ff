package schedule_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

var (
	filterAll     push.Filter
	positionFirst push.Position
)

// TestSubmit_Times: a request's times are rounded, completed and checked.
func TestSubmit_Times(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const day = 24 * time.Hour
	for _, row := range []struct {
		name    string
		change  func(r *schedule.Request)
		sendAt  time.Duration // after began
		expires time.Duration
		faults  []string // the invalid fields
	}{
		{"as asked", func(r *schedule.Request) {}, time.Hour, time.Hour + day, nil},
		{"in another zone", func(r *schedule.Request) { r.SendAt = r.SendAt.In(time.FixedZone("", 3600)) }, time.Hour, time.Hour + day, nil},
		{"a fraction is rounded up", func(r *schedule.Request) { r.SendAt = r.SendAt.Add(1) }, time.Hour + time.Second, time.Hour + time.Second + day, nil},
		{"now", func(r *schedule.Request) { r.SendAt = time.Time{} }, 0, day, nil},
		{"a minute ago", func(r *schedule.Request) { r.SendAt = began.Add(-time.Minute) }, -time.Minute, day - time.Minute, nil},
		{"more than a minute ago", func(r *schedule.Request) { r.SendAt = began.Add(-time.Minute - time.Second) }, 0, 0, []string{"send_at"}},
		{"at the horizon", func(r *schedule.Request) { r.SendAt = began.Add(365 * day) }, 365 * day, 366 * day, nil},
		{"beyond the horizon", func(r *schedule.Request) { r.SendAt = began.Add(365*day + 1) }, 0, 0, []string{"send_at"}},
		{"with an expiry", func(r *schedule.Request) { r.ExpiresAt = began.Add(2 * time.Hour) }, time.Hour, 2 * time.Hour, nil},
		{"expires as it is sent", func(r *schedule.Request) { r.ExpiresAt = began.Add(time.Hour) }, 0, 0, []string{"expires_at"}},
		{"expired", func(r *schedule.Request) { r.SendAt, r.ExpiresAt = began.Add(-time.Minute), began }, 0, 0, []string{"expires_at"}},
		{"latest before the send time", func(r *schedule.Request) { r.Defer, r.Latest = true, began.Add(time.Hour-time.Second) }, 0, 0, []string{"latest"}},
		{"an unknown channel", func(r *schedule.Request) { r.Channel = "pigeon" }, 0, 0, []string{"channel"}},
		{"all at once", func(r *schedule.Request) {
			r.Channel, r.SendAt, r.ExpiresAt = "pigeon", began.Add(-time.Hour), began.Add(-2*time.Hour)
		}, 0, 0, []string{"channel", "send_at", "expires_at"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := request(time.Hour)
			r.Recipient = row.name
			row.change(&r)
			res, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{})
			var fields []string
			if wrong, ok := errors.AsType[invalid.FieldErrors](err); ok {
				for _, f := range wrong {
					fields = append(fields, f.Field)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(fields, row.faults) {
				t.Fatalf("faults %v, want %v", fields, row.faults)
			}
			if p := res.Push; row.faults == nil && (!p.SendAt.Equal(began.Add(row.sendAt)) || !p.ExpiresAt.Equal(began.Add(row.expires)) || p.Channel != "log") {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestSubmit_Wakes: a submit, or a move, of a push to a time within the horizon wakes the push's lane, because the
// lane's owner may have counted that moment before. Any other push, or a refused one, wakes no lane.
func TestSubmit_Wakes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	submit := func(recipient string, in time.Duration) push.Push {
		r := request(0)
		r.Recipient, r.SendAt = recipient, time.Now().Add(in)
		res, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return res.Push
	}
	woken := func(what string, wants ...push.Push) {
		t.Helper()
		got := b.queue.takeWakes()
		if len(got) != len(wants) {
			t.Fatalf("%s: woken %+v, want %d", what, got, len(wants))
		}
		for i, p := range wants {
			if want := (wake{push.RecipientKey(b.tenant, p.Recipient), p.NextAt, p.NextAt.Sub(p.UpdatedAt)}); got[i] != want {
				t.Errorf("%s: woken %+v, want %+v", what, got[i], want)
			}
		}
	}
	now, soon, later := submit("anna", 0), submit("bert", time.Minute), submit("carl", time.Hour)
	woken("submits", now, soon)
	if _, err := b.Submit(t.Context(), b.tenant, request(0), schedule.Options{}); err == nil {
		_ = b.queue.takeWakes()
	}
	res, err := b.Reschedule(t.Context(), b.tenant, later.ID, time.Now(), push.OwnCaps{})
	if err != nil {
		t.Fatal(err)
	}
	woken("the move", res.Push)
	if _, err := b.Reschedule(t.Context(), b.tenant, later.ID, time.Now().Add(time.Hour), push.OwnCaps{}); err != nil {
		t.Fatal(err)
	}
	woken("the move back")
	batch := []schedule.Member{{Request: request(0)}, {Request: request(0)}}
	batch[0].Request.Recipient, batch[1].Request.Recipient = "dora", "emil"
	batch[0].Request.SendAt, batch[1].Request.SendAt = time.Now().Add(2*time.Minute), time.Now()
	if err := b.SubmitBatch(t.Context(), b.tenant, batch, false, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	woken("the batch", batch[1].Decision.Push)
	if err := b.SubmitBatch(t.Context(), b.tenant, batch, true, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	woken("the refused batch")
}

// TestSubmit_Replays: a keyed request gets its push again, even if it would be invalid by now or its place is taken.
func TestSubmit_Replays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	options := schedule.Options{IdempotencyKey: "k", RequestHash: []byte("body")}
	first, err := b.Submit(t.Context(), b.tenant, request(time.Hour), options)
	if err != nil {
		t.Fatal(err)
	}
	past := request(-time.Hour) // the same request, two hours later
	for name, r := range map[string]schedule.Request{"again": request(time.Hour), "much later": past} {
		res, err := b.Submit(t.Context(), b.tenant, r, options)
		if err != nil || res.Outcome != booking.Replayed || res.Push.ID != first.Push.ID {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if _, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{IdempotencyKey: "k", RequestHash: []byte("another")}); !errors.Is(err, push.ErrKeyReused) {
			t.Errorf("another body, %s: %v", name, err)
		}
	}
	if _, err := b.Submit(t.Context(), b.tenant, past, schedule.Options{IdempotencyKey: "new", RequestHash: []byte("body")}); err == nil {
		t.Error("a request of the past was accepted under a new key")
	}

	// A refusal is not kept: the same request may find a place later.
	keyed := schedule.Options{IdempotencyKey: "k2", RequestHash: []byte("body2")}
	if _, err := b.Submit(t.Context(), b.tenant, request(time.Hour), keyed); err == nil {
		t.Fatal("one place, two pushes")
	}
	if _, err := b.Cancel(t.Context(), b.tenant, first.Push.ID); err != nil {
		t.Fatal(err)
	}
	if res, err := b.Submit(t.Context(), b.tenant, request(time.Hour), keyed); err != nil || res.Outcome == booking.Replayed {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestSubmitBatch_Replays: a keyed batch is answered again member by member.
func TestSubmitBatch_Replays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	options := schedule.Options{IdempotencyKey: "k", RequestHash: []byte("body")}
	submit := func() []schedule.Member {
		members := []schedule.Member{{Request: request(time.Hour)}, {Request: request(time.Hour)}, {Request: request(2 * time.Hour)}}
		if err := b.SubmitBatch(t.Context(), b.tenant, members, false, options); err != nil {
			t.Fatal(err)
		}
		return members
	}
	first, again := submit(), submit()
	for _, i := range []int{0, 2} {
		if first[i].Err != nil || again[i].Err != nil || again[i].Decision.Outcome != booking.Replayed || first[i].Decision.Push.ID != again[i].Decision.Push.ID {
			t.Errorf("member %d: %+v, then %+v", i, first[i], again[i])
		}
	}
	if first[1].Err == nil || again[1].Err == nil {
		t.Error("one place, two members")
	}
	options.RequestHash = []byte("another")
	if err := b.SubmitBatch(t.Context(), b.tenant, []schedule.Member{{Request: request(9 * time.Hour)}}, false, options); !errors.Is(err, push.ErrKeyReused) {
		t.Errorf("another body: %v", err)
	}
}

// TestSubmit_BadMessageReleasesPlace: the cache forgets the place of a message that Postgres refuses.
func TestSubmit_BadMessageReleasesPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, 9*time.Hour)
	b.submit(t, 8*time.Hour) // the cache is warm
	b.flush(t)
	bad := request(time.Hour)
	bad.Message = json.RawMessage(`{`)
	if _, err := b.Submit(t.Context(), b.tenant, bad, schedule.Options{}); err == nil {
		t.Fatal("a message that is no JSON was accepted")
	}
	b.submit(t, time.Hour)
}

// TestService_TenantsApart: another tenant's push does not exist.
func TestService_TenantsApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, stranger := b.submit(t, time.Hour), uuid.New()
	for name, call := range map[string]func() error{
		"read":   func() error { _, err := b.Push(t.Context(), stranger, p.ID); return err },
		"cancel": func() error { _, err := b.Cancel(t.Context(), stranger, p.ID); return err },
		"move": func() error {
			_, err := b.Reschedule(t.Context(), stranger, p.ID, began.Add(2*time.Hour), push.OwnCaps{})
			return err
		},
	} {
		if err := call(); !errors.Is(err, push.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := b.read(t, p.ID); got.Status != push.Scheduled || !got.SendAt.Equal(p.SendAt) {
		t.Errorf("%+v", got)
	}
}

// TestRefusal_BeyondHorizon: a refusal offers no free time beyond the horizon.
func TestRefusal_BeyondHorizon(t *testing.T) {
	b := newServers(t).open(t, quota.Policy{{Name: "month", Limit: 1, Window: 30 * 24 * time.Hour}})
	r := request(360 * 24 * time.Hour)
	if _, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{})
	refusal, ok := errors.AsType[*schedule.Refusal](err)
	if !ok || !refusal.Next.IsZero() || refusal.Previous.IsZero() {
		t.Errorf("%+v, %v", refusal, err)
	}
	check, err := b.Check(t.Context(), b.tenant, r)
	if err != nil || check.Allowed() || !check.Next.IsZero() {
		t.Errorf("%+v, %v", check, err)
	}
}
