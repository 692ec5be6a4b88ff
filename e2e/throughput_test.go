package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// throughputConfig has a slow channel and a fast one.
const throughputConfig = `
policy:
  rules: []
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 10s, backoff: {first: 100ms, max: 1s}}
  sms: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 10s, backoff: {first: 100ms, max: 1s},
        throughput: {rate: 10, per: 1s}}
delivery: {lease: 30s, arm_lease: 2s}
`

// TestThroughput_ThreeWorkers: sms leaves at ten per second at most, however
// many workers there are and although one of them is killed; push is not held
// up, not even for the same recipients. Nothing is lost, and waiting has cost no
// attempt.
func TestThroughput_ThreeWorkers(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: throughputConfig})
	b.StartAPI()
	workers := []*process.Process{b.Start("worker"), b.Start("worker"), b.Start("worker")}
	const each = 60
	at := time.Now().Add(3 * time.Second).Truncate(time.Second)
	b.submitAll("sms", each, at)
	b.submitAll("push", each, at)

	b.until("a third of the sms is sent, and all that is not paced", func() bool { return len(b.through("sms")) >= each/3 && len(b.through("push")) >= each })
	testenv.Check(t, workers[0].Kill())
	_, a := b.call(http.MethodGet, "/v1/pushes?status=sending&page_size=200", nil)
	underWay := len(list(a)) // of all workers, by what is recorded
	b.until("all is sent", func() bool { return len(b.seen()) >= 2*each })

	sms, push := b.through("sms"), b.through("push")
	if len(push) != each || push[each/2].After(sms[each/2]) || push[each-1].After(sms[each-1]) {
		t.Errorf("push was held up: %d, the last after %s", len(push), push[len(push)-1].Sub(at))
	}
	for i := range sms { // a busy machine sends late, but nothing before its slot
		if after := sms[i].Sub(at); after < time.Duration(i)*100*time.Millisecond-20*time.Millisecond {
			t.Errorf("sms %d left after %s", i, after)
		}
	}
	b.until("all are recorded", func() bool {
		_, a := b.call(http.MethodGet, "/v1/pushes?status=sent&page_size=200", nil)
		return len(list(a)) == 2*each
	})
	seen := b.seen()
	if again := len(b.provider.Arrivals()) - len(seen); len(seen) != 2*each || again > max(underWay, 1) {
		t.Errorf("%d pushes came to the provider, %d of them twice; %d were under way when a worker was killed", len(seen), again, underWay)
	}
	for id, n := range seen {
		if n == 1 {
			continue
		}
		if got := b.outcomes("/v1/pushes/" + id); n > 2 || got != "sent unknown delivered" { // the killed worker may have been sending
			t.Errorf("push %s came %d times, and ended %s", id, n, got)
		}
	}
	b.wantAudited()
}

// seen counts how often the provider got each push.
func (b *bundle) seen() map[string]int {
	seen := map[string]int{}
	for _, one := range b.provider.Arrivals() {
		seen[one.Push]++
	}
	return seen
}

func list(a object) []any { pushes, _ := a["pushes"].([]any); return pushes }

// submitAll submits a push for each of n recipients.
func (b *bundle) submitAll(channel string, n int, at time.Time) {
	b.t.Helper()
	var pushes []object
	for i := range n {
		pushes = append(pushes, object{"recipient": fmt.Sprint("r", i), "channel": channel, "send_at": at.UTC().Format(time.RFC3339),
			"message": object{"channel": channel}})
	}
	status, a := b.call(http.MethodPost, "/v1/pushes/batch", object{"pushes": pushes})
	if status != http.StatusOK || a["accepted"] != float64(n) {
		b.t.Fatalf("%d %v", status, a)
	}
}

// through returns the arrival times of a channel's pushes at the provider.
func (b *bundle) through(channel string) (at []time.Time) {
	b.t.Helper()
	for _, one := range b.provider.Arrivals() {
		if string(one.Message) == `{"channel":"`+channel+`"}` {
			at = append(at, one.At)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}
