package bulk_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// moveTo moves a push to a time after b.at, unless it has ended.
func (b *bundle) moveTo(t *testing.T, id uuid.UUID, after time.Duration) (moved bool) {
	t.Helper()
	_, err := b.pushes.Reschedule(t.Context(), b.tenant, id, schedule.When{SendAt: b.at.Add(after)}, schedule.Options{})
	if err != nil && !errors.Is(err, push.ErrNotReschedulable) {
		t.Error(err)
	}
	return err == nil
}

// TestRunner_FrozenMoves: what matters of a push that is moved, once or more, before it is listed, is its send time when the bulk
// cancel was accepted.
func TestRunner_FrozenMoves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in, out, far := 10*time.Minute, 2*time.Hour, 21*24*time.Hour // the filter ends after an hour
	type row struct {
		was    time.Duration
		moves  []time.Duration
		before []time.Duration // the request
	}
	rows := []row{
		{was: in, moves: []time.Duration{out}}, {was: in, moves: []time.Duration{far}}, {was: in, moves: []time.Duration{in + time.Minute}},
		{was: in, moves: []time.Duration{out, far, out}}, {was: in, moves: []time.Duration{out, in}},
		{was: out, moves: []time.Duration{in}}, {was: out, moves: []time.Duration{in, far, in}}, {was: far, moves: []time.Duration{in}},
		{was: in, before: []time.Duration{out, far, out}, moves: []time.Duration{in}}, {was: far, before: []time.Duration{out, in}, moves: []time.Duration{out}},
		{was: out, before: []time.Duration{in}}, {was: in, before: []time.Duration{far}},
	}
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = b.submit(t, "user-"+string(rune('a'+i)), r.was)
		for _, to := range r.before {
			b.moveTo(t, ids[i], to)
		}
	}
	p := b.create(t, bulkchange.Change{Action: bulkchange.Cancel, Filter: push.Filter{Channel: "sms", Until: b.at.Add(time.Hour)}})
	other := b.create(t, bulkchange.Change{Action: bulkchange.Cancel, Filter: push.Filter{Channel: "email"}})
	want := 0
	for i, r := range rows {
		for _, to := range r.moves {
			b.moveTo(t, ids[i], to)
		}
	}
	if p = b.run(t, p.ID); p.Status != bulkchange.Done || p.Changed != p.Found || len(p.Refused) > 0 {
		t.Errorf("%+v", p)
	}
	for i, r := range rows {
		at := r.was
		if len(r.before) > 0 {
			at = r.before[len(r.before)-1]
		}
		status := push.Scheduled
		if at < time.Hour {
			status = push.Canceled
			want++
		}
		if got := b.push(t, ids[i]); got.Status != status {
			t.Errorf("%+v: %s at %s, want %s", r, got.Status, got.SendAt.Sub(b.at), status)
		}
	}
	if int(p.Found) != want {
		t.Errorf("found %d, want %d", p.Found, want)
	}
	if other = b.read(t, other.ID); other.Found != 0 || other.Status != bulkchange.Done {
		t.Errorf("%+v", other)
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM bulk_change_pushes WHERE outcome <> 'changed'`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestRunner_FrozenRace: while a bulk cancel is accepted, lists in pages and cancels, and its worker dies, other requests move pushes to and
// fro. Each push ends by its time when the cancel was accepted; for one that moved at that moment, either time is right.
func TestRunner_FrozenRace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const pushes, movers = 1_500, 5
	times := func(i int) time.Duration { return time.Duration(i%120) * time.Minute } // half of them in the first hour
	ids := b.books(t, pushes, func(i int) (string, time.Duration) { return uuid.NewString(), times(i) })
	type moved struct {
		began, ended time.Time
		to           time.Duration
	}
	var (
		mu   sync.Mutex
		of   = map[uuid.UUID][]moved{}
		stop = make(chan struct{})
		all  sync.WaitGroup
	)
	for mover := range movers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(mover), 7))
			for {
				select {
				case <-stop:
					return
				default:
				}
				i := rng.IntN(pushes/movers)*movers + mover // of this mover alone
				m := moved{began: time.Now(), to: times(rng.IntN(pushes))}
				if b.moveTo(t, ids[i], m.to) {
					m.ended = time.Now()
					mu.Lock()
					of[ids[i]] = append(of[ids[i]], m)
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	asked := time.Now()
	p := b.create(t, bulkchange.Change{Action: bulkchange.Cancel, Filter: push.Filter{Until: b.at.Add(time.Hour)}})
	answered := time.Now()
	dying := bulk.NewRunner(&forgetful{b.store, 2}, b.pushes, quiet)
	for {
		if _, err := dying.Pass(t.Context()); errors.Is(err, errCrash) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	testenv.Exec(t, b.url, `UPDATE bulk_changes SET lease_until = NULL`)
	p = b.run(t, p.ID)
	close(stop)
	all.Wait()
	if p.Status != bulkchange.Done || p.Changed != p.Found || len(p.Refused) > 0 {
		t.Errorf("%+v", p)
	}
	moves, after, canceled := 0, 0, 0
	for i, id := range ids {
		in := map[bool]bool{} // whether it may have matched
		at := times(i)
		for _, m := range of[id] {
			if moves++; m.ended.Before(asked) {
				at = m.to
				continue
			}
			if after++; m.began.Before(answered) {
				in[m.to < time.Hour] = true
			}
		}
		in[at < time.Hour] = true
		got := b.push(t, id)
		if got.Status == push.Canceled {
			canceled++
		}
		if !in[got.Status == push.Canceled] {
			t.Errorf("push %d is %s; it was at %s, and moved %+v; asked %s, answered %s", i, got.Status, at, of[id], asked, answered)
		}
	}
	if canceled != int(p.Changed) || after < 50 {
		t.Errorf("%d are canceled; %+v; %d moves, %d of them after the request", canceled, p, moves, after)
	}
	t.Logf("%d moves, %d of them after the request, %d canceled", moves, after, canceled)
}
