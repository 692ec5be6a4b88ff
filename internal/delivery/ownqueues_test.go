package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/tenantchannel"
	"github.com/sendquota/sendquota/internal/testenv"
)

// ownChannels are channels of tenants, by their tenant and name.
type ownChannels struct {
	operator *channel.Set

	mu      sync.Mutex
	entries map[ownName]channel.Entry
	version int64
}

type ownName struct {
	tenant uuid.UUID
	name   string
}

var errBroken = errors.New("the channel cannot be opened")

func (o *ownChannels) Get(tenant uuid.UUID, name string) (e channel.Entry, own bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, own = o.entries[ownName{tenant, name}]; !own {
		e, _ = o.operator.Get(name)
	} else if e.Channel == nil {
		err = errBroken
	}
	return e, own, err
}

func (o *ownChannels) Claimed(tenant uuid.UUID, name string, version int64) (channel.Entry, error) {
	e, own, err := o.Get(tenant, name)
	if err == nil && own != (version > 0) {
		err = fmt.Errorf("%s has version %d", name, version)
	}
	return e, err
}

// remove deletes a tenant's channel.
func (o *ownChannels) remove(tenant uuid.UUID, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entries, ownName{tenant, name})
}

func (o *ownChannels) InUse() bool { return true }

func (o *ownChannels) Refresh(uuid.UUID) {}

// set has a tenant's channel send through a provider at a speed.
func (o *ownChannels) set(tenant uuid.UUID, name string, p channel.Channel, s pace.Speed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version++
	o.entries[ownName{tenant, name}] = channel.Entry{Name: name, Version: o.version, Channel: p, Speed: s, Retry: push.Retry{MaxAttempts: 100, First: 200 * time.Millisecond, Max: 400 * time.Millisecond}}
}

// ownBundle is workers with channels of tenants.
type ownBundle struct {
	*workersBundle
	channels *ownChannels
}

func setupOwn(t testing.TB, workers int, options ...func(*delivery.Config)) *ownBundle {
	t.Helper()
	b := &ownBundle{channels: &ownChannels{entries: map[ownName]channel.Entry{}}}
	b.workersBundle = setupWorkers(t, workers, pace.Speed{}, append(options, func(cfg *delivery.Config) { cfg.Own = b.channels })...)
	set, err := channel.NewSet(channel.Entry{Name: "sms", Channel: b.sms, Retry: retry}, channel.Entry{Name: "log", Channel: b.provider, Retry: retry})
	testenv.Check(t, err)
	b.channels.operator = set
	return b
}

// put makes a channel of the current tenant, and returns its provider.
func (b *ownBundle) put(t *testing.T, name string, s pace.Speed) *provider {
	t.Helper()
	p := &provider{}
	_, _, err := b.store.PutChannel(t.Context(), b.tenant, name, func(tenantchannel.Channel) (tenantchannel.Change, error) {
		return tenantchannel.Change{Name: name, Type: "log", Settings: []byte(`{}`), Max: 20}, nil
	})
	testenv.Check(t, err)
	b.channels.set(b.tenant, name, p, s)
	return p
}

// next makes another tenant the current one.
func (b *ownBundle) next(t *testing.T) {
	t.Helper()
	id, _, err := b.store.CreateTenant(t.Context(), uuid.NewString())
	testenv.Check(t, err)
	b.tenant = id
}

// TestOwnQueues_Apart: the speed of a tenant's channel holds for all workers together, and for no other channel: not for
// another channel of the tenant, nor for one of the same name of another tenant or the operator. Nothing is sent through a
// channel of another owner.
func TestOwnQueues_Apart(t *testing.T) {
	t.Parallel()
	b := setupOwn(t, 3)
	slow, fast := b.put(t, "sms", pace.PerSpan(20, time.Second, 1)), b.put(t, "mine", pace.Speed{})
	first := b.tenant
	b.due(t, "sms", names("slow", 60)...)
	b.due(t, "mine", names("mine", 20)...)
	b.next(t)
	theirs := b.put(t, "sms", pace.Speed{})
	b.due(t, "sms", names("theirs", 20)...)
	b.next(t)
	began := time.Now()
	b.due(t, "sms", names("none", 20)...)
	eventually(t, "the other channels send all", func() bool { return len(fast.all()) == 20 && len(theirs.all()) == 20 && len(b.sms.all()) == 20 })
	if n := len(slow.all()); n > 30+int(time.Since(began)/(50*time.Millisecond)) || n == 60 {
		t.Errorf("the slow channel has sent %d by then", n)
	}
	eventually(t, "the slow channel sends all", func() bool { return len(slow.all()) == 60 })
	if at := slow.times(); at[59].Sub(at[0]) < 59*50*time.Millisecond-300*time.Millisecond { // the first may be late
		t.Errorf("60 are sent within %s, the speed is 20 a second", at[59].Sub(at[0]))
	}
	for _, took := range append(slow.all(), fast.all()...) {
		if took.push.Tenant != first {
			t.Errorf("a push of tenant %s went through the first one's channel", took.push.Tenant)
		}
	}
	b.audit(t, nil)
}

// TestOwnQueues_Worst: one tenant does its worst with twenty channels whose providers hang, fail or ask for pauses. The pushes of
// another tenant's channel, and of the operator's, are sent meanwhile.
func TestOwnQueues_Worst(t *testing.T) {
	t.Parallel()
	b := setupOwn(t, 2)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	for i := range 20 {
		answers := []func(context.Context, push.Push, int) channel.Result{
			func(ctx context.Context, _ push.Push, _ int) channel.Result {
				select {
				case <-ctx.Done():
				case <-ended:
				}
				return channel.Result{Outcome: push.Unknown, Error: "no answer"}
			},
			func(context.Context, push.Push, int) channel.Result { return hostileAnswers["down"] },
			func(context.Context, push.Push, int) channel.Result { return hostileAnswers["throttled"] },
		}
		name := fmt.Sprint("own", i)
		b.put(t, name, pace.Speed{}).answer = answers[i%3]
		b.bookAll(t, name, thisSecond().Add(-10*time.Second), names(name+"-", 20)...)
	}
	b.wake(t)
	b.next(t)
	theirs := b.put(t, "sms", pace.Speed{})
	for round := range 5 {
		b.due(t, "sms", names(fmt.Sprint("v", round, "-"), 10)...)
		b.due(t, "log", names(fmt.Sprint("w", round, "-"), 10)...)
		eventually(t, "the neighbour's are sent", func() bool { return len(theirs.all()) == 10*(round+1) && len(b.all()) == 10*(round+1) })
	}
	if len(b.sms.all()) > 0 {
		t.Error("a push of a tenant's channel went through the operator's")
	}
}

// TestOwnQueues_Unusable: while a tenant's channel cannot be used, its pushes wait, without an attempt. Its changed settings are
// in force at once, also if the next time slot is an hour away.
func TestOwnQueues_Unusable(t *testing.T) {
	t.Parallel()
	b := setupOwn(t, 1)
	p := b.put(t, "mine", pace.Speed{})
	b.channels.set(b.tenant, "mine", nil, pace.Speed{})
	b.due(t, "mine", names("a", 5)...)
	booked := b.due(t, "mine", "last")[0]
	time.Sleep(100 * time.Millisecond)
	if got := b.read(t, booked.ID); got.Attempts != 0 || got.Status != push.Scheduled {
		t.Errorf("a push waits with %d attempts, and status %s", got.Attempts, got.Status)
	}
	b.audit(t, nil)
	b.channels.set(b.tenant, "mine", p, pace.PerSpan(1, time.Hour, 1))
	eventually(t, "the first one is sent", func() bool { return len(p.all()) == 1 })
	time.Sleep(100 * time.Millisecond)
	if n := len(p.all()); n != 1 {
		t.Errorf("%d are sent within the hour", n)
	}
	b.channels.set(b.tenant, "mine", p, pace.Speed{})
	eventually(t, "all are sent, long before the hour is over", func() bool { return len(p.all()) == 6 })
}

// TestOwnQueues_Missed: pushes whose wake-up was lost are found by the owner of their lane. A backlog that no queue has room for
// is sent, too, and then the queue is forgotten.
func TestOwnQueues_Missed(t *testing.T) {
	t.Parallel()
	b := setupOwn(t, 1)
	const pushes = 3000 // more than a queue holds
	p := b.put(t, "mine", pace.Speed{})
	b.bookAll(t, "mine", thisSecond().Add(-time.Minute), names("m", pushes)...)
	testenv.Until(t, 20*time.Millisecond, "all are sent", func() bool { return len(p.all()) == pushes })
	if n := b.workers[0].OwnQueues(); n != 1 {
		t.Errorf("%d queues", n)
	}
	var in time.Duration
	eventually(t, "the queue is forgotten", func() bool {
		in += 2 * time.Minute
		b.workers[0].ForgetIdle(in)
		return b.workers[0].OwnQueues() == 0
	})
	b.due(t, "mine", "again")
	eventually(t, "the queue is there again", func() bool { return len(p.all()) == pushes+1 })
}

// TestOwnQueues_Replaced: a provider that asks for a pause gets it from all workers. When the tenant changes the channel, the pause
// is over.
func TestOwnQueues_Replaced(t *testing.T) {
	t.Parallel()
	b := setupOwn(t, 2)
	busy := b.put(t, "mine", pace.Speed{})
	busy.answer = func(context.Context, push.Push, int) channel.Result { return hostileAnswers["throttled"] }
	b.bookAll(t, "mine", thisSecond().Add(-10*time.Second), "first")
	testenv.Check(t, b.workers[0].Handle(t.Context(), push.WakeUp{Lane: all, At: thisSecond().Add(-10 * time.Second)}))
	eventually(t, "the provider is asked", func() bool { return len(busy.all()) == 1 })
	time.Sleep(500 * time.Millisecond) // two looks of the other worker at the pauses
	b.due(t, "mine", names("a", 20)...)
	time.Sleep(500 * time.Millisecond)
	if n := len(busy.all()); n != 1 {
		t.Errorf("%d attempts, although the provider asked for an hour after the first", n)
	}
	other := &provider{}
	b.channels.set(b.tenant, "mine", other, pace.Speed{})
	eventually(t, "the other provider gets all", func() bool { return len(other.all()) == 20 })
}

// TestOwnQueues_Deleted: pushes that were booked while their channel was deleted are canceled, also if the operator has no channel of that
// name, and the queue ends.
func TestOwnQueues_Deleted(t *testing.T) {
	t.Parallel()
	b := setupOwn(t, 1)
	b.put(t, "mine", pace.Speed{})
	before := b.bookAll(t, "mine", thisSecond().Add(-10*time.Second), "before")[0]
	deletion, err := b.store.BeginDelete(t.Context(), b.tenant, "mine", true)
	testenv.Check(t, err)
	if _, err := b.store.DeleteChannel(t.Context(), deletion); !errors.As(err, new(*tenantchannel.InUseError)) {
		t.Fatalf("the deletion of a channel with a push: %v", err)
	}
	testenv.Exec(t, b.url, `DELETE FROM tenant_channels`)
	testenv.Exec(t, b.url, `WITH v AS (UPDATE channel_changes SET version = version + 1 RETURNING version) UPDATE tenants SET channels_version = v.version FROM v WHERE channels_version > 0`)
	b.channels.remove(b.tenant, "mine")
	after := b.bookAll(t, "mine", thisSecond().Add(-10*time.Second), "after")[0]
	for _, p := range []push.Push{before, after} {
		eventually(t, p.Recipient+" is canceled", func() bool { return b.read(t, p.ID).Status == push.Canceled })
		if got := b.read(t, p.ID); got.LastError != booking.ChannelDeletedReason || got.Attempts != 0 {
			t.Errorf("%s is canceled because of %q, after %d attempts", p.Recipient, got.LastError, got.Attempts)
		}
	}
	var in time.Duration
	eventually(t, "the queue ends", func() bool {
		in += 2 * time.Minute
		b.workers[0].ForgetIdle(in)
		return b.workers[0].OwnQueues() == 0
	})
}

// TestOwnQueues_MadeAgain: a deletion does not end a channel that was made again meanwhile, and one that was given up leaves the channel
// as it was.
func TestOwnQueues_MadeAgain(t *testing.T) {
	t.Parallel()
	b := setupOwn(t, 1)
	b.put(t, "mine", pace.Speed{})
	_, err := b.store.DeleteChannel(t.Context(), tenantchannel.Deletion{Tenant: b.tenant, ID: uuid.New(), Name: "mine"}) // of the channel before
	testenv.Check(t, err)
	deletion, err := b.store.BeginDelete(t.Context(), b.tenant, "mine", false)
	testenv.Check(t, err)
	testenv.Check(t, b.store.KeepChannel(t.Context(), deletion))
	own, err := b.store.OwnChannels(t.Context(), b.tenant)
	testenv.Check(t, err)
	if len(own.Channels) != 1 || own.Channels[0].Deleting {
		t.Errorf("the channels are %+v", own.Channels)
	}
}
