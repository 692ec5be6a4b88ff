package delivery_test

import (
	"encoding/json"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// TestSend_PausedMeanwhile checks that a worker that was held up for more than a second after its claim reads the pauses again, and
// sends nothing if sending is paused, or if it cannot read them. The push is tried again, whatever the maximum of attempts is.
func TestSend_PausedMeanwhile(t *testing.T) {
	for name, row := range map[string]struct {
		slow         time.Duration
		paused       bool
		unread       error
		asked, sends int
	}{
		"at once":         {time.Second, true, nil, 0, 1},
		"held up":         {time.Second + 1, false, nil, 1, 1},
		"and paused":      {time.Second + 1, true, nil, 1, 0},
		"without answers": {time.Second + 1, false, push.ErrUnavailable, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := claimed()
				c.Attempt = 1000
				s, p := &scripted{claims: []booking.Claim{c}, slow: row.slow, paused: row.paused, unread: row.unread}, &provider{}
				handle(t, setupScripted(t, s, p))
				if len(p.took) != row.sends || s.asked != row.asked || len(s.finished) != 1 {
					t.Fatalf("sent %d, asked %d times, finished %+v", len(p.took), s.asked, s.finished)
				}
				if f := s.finished[0]; row.sends == 0 && (f.Outcome != push.Refused || f.Resolution.Status != push.Scheduled) {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

// TestSend_PausedWhileRendering checks that a worker reads the pauses after it has rendered a message, which may wait for others.
func TestSend_PausedWhileRendering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := claimed()
		c.Push.Rendering = json.RawMessage(`{"message":{"body":"now"},"zone":"UTC"}`)
		s, p := &scripted{claims: []booking.Claim{c}, paused: true}, &provider{}
		computing := bulkhead.NewComputing[uuid.UUID](nil)
		for range 2 * runtime.GOMAXPROCS(0) {
			go func() {
				_ = computing.Do(t.Context(), uuid.New(), func() error { time.Sleep(time.Second + 1); return nil })
			}()
		}
		synctest.Wait()
		handle(t, delivery.New(s, quota.NewCache(nil, redisscript.Config{}), channels(t, p), &wakes{}, quiet, &metrics{}, delivery.Config{Lease: lease, Concurrency: 1, Computing: computing}))
		if len(p.took) != 0 || s.asked != 1 || len(s.finished) != 1 || s.finished[0].Outcome != push.Refused {
			t.Errorf("sent %d, asked %d times, finished %+v", len(p.took), s.asked, s.finished)
		}
	})
}

// replaced has no channel of a tenant until the tenant makes one, of which this process hears with the next read.
type replaced struct {
	delivery.OwnChannels
	entry     channel.Entry
	refreshed bool
}

func (r *replaced) Claimed(uuid.UUID, string, int64) (channel.Entry, error) { return r.entry, nil }

func (r *replaced) Get(uuid.UUID, string) (channel.Entry, bool, error) {
	return r.entry, r.refreshed, nil
}

func (r *replaced) Refresh(uuid.UUID) { r.refreshed = true }

func (r *replaced) InUse() bool { return false }

// TestSend_ChannelMadeMeanwhile checks that a worker that was held up for more than a second after its claim sends nothing through the
// operator's channel if the tenant has made one of its name meanwhile.
func TestSend_ChannelMadeMeanwhile(t *testing.T) {
	for slow, sends := range map[time.Duration]int{time.Second: 1, time.Second + 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			s, p := &scripted{claims: []booking.Claim{claimed()}, slow: slow}, &provider{}
			all := channels(t, p)
			entry, _ := all.Get(claimed().Push.Channel)
			handle(t, delivery.New(s, quota.NewCache(nil, redisscript.Config{}), all, &wakes{}, quiet, &metrics{}, delivery.Config{Lease: lease, Concurrency: 1, Own: &replaced{entry: entry}}))
			if len(p.took) != sends || len(s.finished) != 1 {
				t.Fatalf("after %s: sent %d, finished %+v", slow, len(p.took), s.finished)
			}
			if f := s.finished[0]; sends == 0 && (f.Outcome != push.Refused || f.Resolution.Status != push.Scheduled) {
				t.Errorf("%+v", f)
			}
		})
	}
}
