package delivery_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// TestWorker_Model runs a worker on models of a store, a queue and providers, in the time of a bubble, with random
// pushes, wake-ups and troubles. Every push is sent once and not early; one wake-up for its time is enough, unless
// Postgres fails; and a provider that hangs or fails does not delay the pushes of another. A worker in an endless loop
// would search more often than the test allows.
func TestWorker_Model(t *testing.T) {
	t.Parallel()
	worlds := 400
	if testing.Short() {
		worlds = 50
	}
	for seed := range uint64(worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newWorld(seed).run(t) })
		})
	}
}

// world is a worker and its surroundings.
type world struct {
	noOwn
	*rand.Rand
	began    time.Time
	lanes    []push.Lane
	worker   *delivery.Worker
	names    []string // of channels
	troubles map[string]trouble
	owned    bool      // the worker owns the lanes
	outage   time.Time // end of the time in which Postgres fails now and then; zero: it never does
	slots    int
	most     int // searches that the worker may need

	mu     sync.Mutex
	pushes []*modelPush
	looks  int
	notes  []string
	ending bool
	wakes  sync.WaitGroup
}

// trouble is the trouble of a provider between two times.
type trouble struct {
	kind  string // "": none
	until time.Time
}

type modelPush struct {
	push.Push
	key     int64
	token   uuid.UUID // of the attempt under way
	waits   bool      // it has not ended
	more    bool      // another push of the recipient waits for the attempt
	sent    []time.Time
	clock   time.Duration // how far the queue's clock is behind
	trouble bool          // a push of its recipient waits for a provider in trouble
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), began: time.Now(), troubles: map[string]trouble{}}
	w.names = []string{"log", "sms", "mail"}[:1+w.IntN(3)]
	w.lanes = push.Lanes([]int{1, 2, 4}[w.IntN(3)])
	var entries []channel.Entry
	for _, name := range w.names {
		if w.IntN(3) == 0 && name != "log" {
			w.troubles[name] = trouble{[]string{"hangs", "fails"}[w.IntN(2)], w.began.Add(w.upTo(12 * time.Second))}
		}
		e := channel.Entry{
			Name: name, Channel: &provider{answer: w.answer(name)}, Retry: push.Retry{MaxAttempts: 1000, First: 200 * time.Millisecond, Max: time.Second},
		}
		if w.IntN(4) == 0 {
			e.Speed = pace.Speed{Every: 10 * time.Millisecond, Burst: 1 + w.IntN(3)}
		}
		entries = append(entries, e)
	}
	set, err := channel.NewSet(entries...)
	if err != nil {
		panic(err)
	}
	cfg := delivery.Config{Lease: time.Minute, Pacer: &modelPacer{next: map[string]time.Time{}}, Concurrency: len(w.names) * (2 + w.IntN(6))}
	if w.IntN(3) == 0 {
		w.outage = w.began.Add(w.upTo(6 * time.Second))
	}
	w.slots = cfg.Concurrency
	if w.owned = w.IntN(2) == 0; w.owned {
		cfg.Lanes = func() []push.Lane { return w.lanes }
	}
	w.worker = delivery.New(w, quota.NewCache(nil, redisscript.Config{}), set, w, quiet, &metrics{}, cfg)
	return w
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

// pause takes time as Postgres would, or fails while Postgres is in trouble.
func (w *world) pause() error {
	w.mu.Lock()
	d, fails := time.Millisecond+w.upTo(3*time.Millisecond), time.Now().Before(w.outage) && w.IntN(3) == 0
	w.mu.Unlock()
	time.Sleep(d)
	if fails {
		return push.ErrUnavailable
	}
	return nil
}

// own wakes the worker for lanes with overdue pushes, as the owner of lanes does.
func (w *world) own() {
	for time.Sleep(3 * time.Second); ; time.Sleep(3 * time.Second) {
		w.mu.Lock()
		if w.ending {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for _, l := range w.lanes {
			w.Wake(int64(l.First), time.Time{}, 0)
		}
	}
}

func (w *world) answer(name string) func(context.Context, push.Push, int) channel.Result {
	return func(ctx context.Context, p push.Push, _ int) channel.Result {
		if t := w.troubles[name]; time.Now().Before(t.until) {
			switch t.kind {
			case "fails":
				return channel.Result{Outcome: push.Refused, Down: true, Error: "connection refused"}
			case "hangs":
				time.Sleep(time.Until(t.until))
			}
		}
		_ = w.pause()
		return channel.Result{Outcome: push.Delivered}
	}
}

// run books pushes and wakes the worker for each, and checks the results.
func (w *world) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	recipients, spread := 1+w.IntN(150), []time.Duration{1, 3 * time.Second, 8 * time.Second}[w.IntN(3)]
	n := 1 + w.IntN(150)
	for range n {
		w.book(fmt.Sprint("r", w.IntN(recipients)), w.began.Add(w.upTo(spread)-2*time.Second).Truncate(time.Second))
	}
	w.mark()
	w.most = 2000 + 400*n
	for _, p := range w.pushes {
		p.clock = w.upTo(200*time.Millisecond) - 100*time.Millisecond
	}
	running := make(chan error, 1)
	go func() { running <- w.worker.Run(ctx) }()
	for _, p := range w.pushes {
		w.Wake(p.key, p.SendAt, time.Until(p.SendAt)+p.clock)
	}
	if !w.outage.IsZero() {
		w.wakes.Go(w.own)
	}
	const calm = 30 * time.Second // after the last trouble, with the pauses of breakers
	time.Sleep(12*time.Second + calm)
	w.mu.Lock()
	w.ending = true
	w.check(t)
	w.mu.Unlock()
	cancel()
	if err := <-running; err != nil {
		t.Error(err)
	}
	w.wakes.Wait()
}

func (w *world) book(recipient string, at time.Time) {
	id := uuid.UUID{}
	for i := range id {
		id[i] = byte(w.Uint32())
	}
	p := push.Push{Content: push.Content{Recipient: recipient, Channel: w.names[w.IntN(len(w.names))]}, ID: id, SendAt: at, NextAt: at, ExpiresAt: at.Add(time.Hour), Status: push.Scheduled}
	w.pushes = append(w.pushes, &modelPush{Push: p, key: push.RecipientKey(p.Tenant, recipient), waits: true})
}

// mark marks the pushes that a trouble may delay: also its recipients' pushes for other channels, because a recipient
// has one attempt at a time.
func (w *world) mark() {
	for _, p := range w.pushes {
		p.trouble = slices.ContainsFunc(w.pushes, func(o *modelPush) bool { return o.key == p.key && w.troubles[o.Channel].kind != "" })
	}
}

func (w *world) check(t *testing.T) {
	const inTime = 4 * time.Second
	for _, p := range w.pushes {
		due := p.SendAt
		if due.Before(w.began) {
			due = w.began
		}
		switch {
		case len(p.sent) != 1:
			t.Errorf("%s of %d through %s was sent %d times", p.ID, p.key, p.Channel, len(p.sent))
		case p.sent[0].Before(p.SendAt):
			t.Errorf("%s through %s left %s early", p.ID, p.Channel, p.SendAt.Sub(p.sent[0]))
		case !p.trouble && w.outage.IsZero() && p.sent[0].Sub(due) > inTime:
			t.Errorf("%s through %s left %s late, in no trouble", p.ID, p.Channel, p.sent[0].Sub(due))
		}
	}
	if t.Failed() {
		t.Logf("channels %v, %d slots, lanes %v, owned: %v, outage until %v, troubles %v, %d pushes, %d looks", w.names, w.slots, w.lanes, w.owned, w.outage, w.troubles, len(w.pushes), w.looks)
		t.Log(strings.Join(w.notes, "\n"))
	}
}

// modelPacer gives one time slot after another.
type modelPacer struct {
	mu   sync.Mutex
	next map[string]time.Time
}

func (*modelPacer) Forget(string, pace.Speed) {}

func (p *modelPacer) Take(_ context.Context, o pace.Order) pace.Slots {
	time.Sleep(time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.next[o.Channel].Before(now) {
		p.next[o.Channel] = now
	}
	wait := p.next[o.Channel].Sub(now)
	taken := min(o.Wanted, o.Speed.Burst)
	p.next[o.Channel] = p.next[o.Channel].Add(time.Duration(taken) * o.Speed.Every)
	return pace.Slots{Taken: taken, Wait: wait}
}

// Charge takes slots behind all others.
func (p *modelPacer) Charge(_ context.Context, channel string, s pace.Speed, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[channel] = p.next[channel].Add(time.Duration(n) * s.Every)
}

func (p *modelPacer) Pause(context.Context, string, uuid.UUID, time.Duration) {}

func (p *modelPacer) Run(ctx context.Context, _ []string, _ func(string, uuid.UUID, time.Duration)) error {
	<-ctx.Done()
	return nil
}

// note records what happened to a recipient, for a test that fails: the same seed may not lead there again, because the
// order of goroutines varies.
func (w *world) note(recipientKey int64, format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf("%s: %d ", time.Since(w.began), recipientKey)+fmt.Sprintf(format, args...))
}

// Wake is the queue: it passes a wake-up to the worker when its time has come, and again until it is handled.
func (w *world) Wake(recipientKey int64, at time.Time, in time.Duration) {
	wake := push.WakeUp{Lane: push.LaneOf(w.lanes, recipientKey), At: at}
	w.wakes.Go(func() {
		for time.Sleep(in); w.worker.Handle(context.Background(), wake) != nil; time.Sleep(100 * time.Millisecond) {
			w.mu.Lock()
			ending := w.ending
			w.mu.Unlock()
			if ending {
				return
			}
		}
	})
}

// Due works as the store's.
func (w *world) Due(_ context.Context, o booking.DueOrder) (due []booking.Due, now time.Time, err error) {
	if err := w.pause(); err != nil {
		return nil, now, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now = time.Now()
	if w.looks++; w.looks > w.most {
		panic(fmt.Sprint("the worker has looked ", w.looks, " times"))
	}
	direction := 1
	if o.Newest {
		direction = -1
	}
	order := func(a, b booking.Due) int {
		return direction * cmp.Or(a.At.Compare(b.At), cmp.Compare(push.Shard(a.RecipientKey), push.Shard(b.RecipientKey)), cmp.Compare(a.RecipientKey, b.RecipientKey))
	}
	for _, c := range o.Channels {
		var page []booking.Due
		for _, p := range w.pushes {
			d := booking.Due{RecipientKey: p.key, Channel: p.Channel, At: p.NextAt}
			if shard := push.Shard(p.key); p.Channel == c.Name && p.waits && p.token == uuid.Nil && !p.NextAt.After(now) && !p.NextAt.Before(o.From) &&
				shard >= o.Lane.First && shard <= o.Lane.Last && !slices.Contains(o.Without, p.key) && (c.Behind.RecipientKey == 0 || order(d, c.Behind) > 0) {
				page = append(page, d)
			}
		}
		slices.SortFunc(page, order)
		due = append(due, page[:min(len(page), c.Most)]...)
	}
	slices.SortFunc(due, order)
	due = due[:min(len(due), o.Most)]
	for _, d := range due {
		w.note(d.RecipientKey, "is due through %s, asked by %v", d.Channel, o.Channels)
	}
	return due, now, nil
}

// ClaimAll works as the store's, in one transaction.
func (w *world) ClaimAll(_ context.Context, orders []booking.ClaimOrder) ([]booking.Claim, error) {
	if err := w.pause(); err != nil {
		return make([]booking.Claim, 1), err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	claims := make([]booking.Claim, len(orders))
	for i, o := range orders {
		claims[i] = w.claim(o)
	}
	return claims, nil
}

// Claim is ClaimAll for one recipient.
func (w *world) Claim(ctx context.Context, o booking.ClaimOrder) (booking.Claim, error) {
	claims, err := w.ClaimAll(ctx, []booking.ClaimOrder{o})
	return claims[0], err
}

func (w *world) claim(o booking.ClaimOrder) booking.Claim {
	state, now := booking.ClaimState{Locked: w.IntN(20) == 0}, time.Now()
	for i := range o.Token {
		o.Token[i] = byte(w.Uint32())
	}
	var oldest, busy *modelPush
	for _, p := range w.pushes {
		switch {
		case p.key != o.RecipientKey || !p.waits:
		case p.token != uuid.Nil:
			busy = p
			state.InFlight = append(state.InFlight, booking.InFlight{Push: p.Push, Token: p.token})
		case p.NextAt.After(now.Add(booking.MaxWait)):
		case o.Channel != "" && p.Channel != o.Channel || o.Channel == "" && slices.Contains(o.Without, p.Channel):
			state.More = true
		case oldest == nil:
			oldest = p
		default:
			state.More = true
			if p.NextAt.Before(oldest.NextAt) {
				oldest = p
			}
		}
	}
	if oldest != nil {
		state.Due = oldest.Push
	}
	c := state.Decide(o, now)
	w.note(o.RecipientKey, "is claimed for, channel %q without %v: outcome %d, %s", o.Channel, o.Without, c.Outcome, c.Push.Channel)
	switch {
	case c.Outcome == booking.Claimed:
		oldest.token, oldest.more = c.Token, state.More
		oldest.Attempts++
	case c.Outcome == booking.Nothing && oldest != nil && busy != nil:
		busy.more = true
	}
	return c
}

// Finish works as the store's.
// PausedNow answers that nothing is paused.
func (w *world) PausedNow(context.Context, push.Push) (bool, error) { return false, nil }

func (w *world) Finish(_ context.Context, f booking.Finish) (more bool, err error) {
	if err := w.pause(); err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.pushes, func(p *modelPush) bool { return p.token == f.Token })
	p := w.pushes[i]
	p.token = uuid.Nil
	w.note(p.key, "had %s through %s, more waits: %v", f.Outcome, p.Channel, p.more)
	if f.Outcome == push.Delivered {
		p.sent = append(p.sent, time.Now())
	}
	if p.waits = f.Resolution.Status == push.Scheduled; p.waits {
		p.NextAt = time.Now().Add(f.Resolution.Delay)
	}
	return p.more, nil
}
