package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/testenv"
)

// withKeys replaces the keys that seal in the environment of all programs that start from now on.
func (b *bundle) withKeys(key, previous string) {
	b.Env = slices.DeleteFunc(slices.Clone(b.Env), func(v string) bool { return strings.HasPrefix(v, seal.KeyVariable) })
	b.Env = append(b.Env, seal.KeyVariable+"="+key)
	if previous != "" {
		b.Env = append(b.Env, seal.PreviousVariable+"="+previous)
	}
}

// TestSeal_RotatedUnderLoad changes the key that seals secrets, as docs/operations.md describes it, while pushes are submitted to channels of
// a tenant and the channels are changed. Every accepted push arrives once, in its first attempt, signed with the channel's secret. A start
// without the previous key works afterwards. A start with a wrong key, with the old one, or without any, fails and has the reason.
func TestSeal_RotatedUnderLoad(t *testing.T) {
	t.Parallel()
	hook := newInbox(t)
	b := setupWith(t, options{config: strings.Replace(usualConfig, "[{name: per-minute, limit: 1, window: 1m}, {name: per-day, limit: 3, window: 24h}]", "[]", 1) +
		"tenant_channels: {allow_private_addresses: true}\n"})
	secrets := []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
	put := func(channel, timeout int, secret bool) (answer, error) {
		body := object{"type": "webhook", "url": hook.URL, "timeout": fmt.Sprint(timeout, "s"), "backoff": object{"first": "200ms", "max": "1s"}}
		if secret {
			body["secret"] = secrets[channel]
		}
		return b.ask("PUT", fmt.Sprint("/v1/channels/own-", channel), body)
	}
	api := b.StartAPI()
	workers := []*process.Process{b.Start("worker"), b.Start("worker")}
	for i := range secrets {
		a, err := put(i, 5, true)
		testenv.Check(t, err)
		if a.status != http.StatusCreated {
			t.Fatal(a)
		}
	}

	var (
		load     sync.WaitGroup
		ended    = make(chan struct{})
		accepted atomic.Int64
		changes  atomic.Int64
	)
	load.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if n%25 == 0 { // the secret stays
				if a, err := put(n/25%2, 3+n/25%5, false); err == nil && a.status == http.StatusOK {
					changes.Add(1)
				} else if err == nil {
					t.Errorf("a change is answered with %v", a)
				}
			}
			for try := true; try; { // while the API starts again
				body := object{"recipient": fmt.Sprint("user-", n, "-"), "channel": fmt.Sprint("own-", n%2), "message": object{"body": "x"}}
				a, err := b.ask("POST", "/v1/pushes", body, "Idempotency-Key", fmt.Sprint("push-", n))
				if try = err != nil || a.status == http.StatusServiceUnavailable; try {
					time.Sleep(20 * time.Millisecond)
				} else if a.status != http.StatusCreated && a.status != http.StatusOK {
					t.Errorf("a submit is answered with %v", a)
				}
			}
			accepted.Add(1)
		}
	})
	arrives := func() {
		t.Helper()
		since := accepted.Load()
		b.until("fifty more pushes are accepted and arrive", func() bool {
			return accepted.Load() >= since+50 && int64(len(hook.of(`"user-`))) >= since+50
		})
	}
	restart := func() {
		t.Helper()
		b.stop(api)
		api = b.StartAPI()
		for i := range workers {
			b.stop(workers[i])
			workers[i] = b.Start("worker")
			arrives()
		}
	}

	was, is := testenv.SealKey, seal.NewKey()
	arrives()
	b.withKeys(was, is) // all programs can open what the others will seal
	restart()
	b.withKeys(is, was)
	restart()
	if said := b.Tool("seal", "rotate"); !strings.Contains(said, "resealed") {
		t.Errorf("seal rotate: %s", said)
	}
	arrives()
	if said := b.Tool("seal", "rotate"); said != "resealed 0 secrets\n" {
		t.Errorf("the second seal rotate: %s", said)
	}
	b.withKeys(is, "")
	restart()
	close(ended)
	load.Wait()
	b.until("all accepted pushes arrive", func() bool { return int64(len(hook.of(`"user-`))) >= accepted.Load() })
	if changes.Load() < 3 {
		t.Errorf("the channels were changed %d times", changes.Load())
	}
	for n := range accepted.Load() {
		got := hook.of(fmt.Sprintf(`"user-%d-"`, n))
		if len(got) != 1 {
			t.Errorf("push %d came %d times", n, len(got))
		} else if !got[0].signed(t, secrets[n%2]) {
			t.Errorf("push %d is not signed with the secret of its channel", n)
		}
	}
	// On a very busy machine a worker that was held up puts an attempt off without sending: that has nothing to do with keys.
	const other = ` WHERE error NOT LIKE 'not sent: the worker was held up%'`
	b.until("all attempts are recorded", func() bool {
		return testenv.Query[int64](t, b.Database, `SELECT count(*) FROM sends`+other) == accepted.Load()
	})
	if failed := testenv.Query[int64](t, b.Database, `SELECT count(*) FROM sends`+other+` AND outcome <> 'delivered'`); failed > 0 {
		t.Errorf("%d attempts failed", failed)
	}

	for _, wrong := range []struct{ key, says string }{
		{seal.NewKey(), "SENDQUOTA_SEAL_KEY does not open 2 of 2 sealed secrets"}, {was, "SENDQUOTA_SEAL_KEY does not open 2 of 2 sealed secrets"}, {"", "SENDQUOTA_SEAL_KEY is not set"},
		{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "31"},
	} {
		b.withKeys(wrong.key, "")
		for _, program := range []string{"api", "worker"} {
			if o := b.Exec(program); o.Status == 0 || !strings.Contains(o.Out+o.Err, wrong.says) {
				t.Errorf("%s with the key %q exits with %d: %s%s; want %q", program, wrong.key, o.Status, o.Out, o.Err, wrong.says)
			}
		}
	}
}
