package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// providersConfig has a channel that tries again after an unknown outcome, one
// that does not, and one whose provider is not there.
const providersConfig = `
policy:
  rules: [{name: one, limit: 1, window: 1s}]
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 5s, max_attempts: 3, backoff: {first: 50ms, max: 100ms}}
  once: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 5s, max_attempts: 3, backoff: {first: 50ms, max: 100ms}, on_unknown: fail}
  gone: {type: webhook, url: "http://127.0.0.1:1/send", allow_private_addresses: true, timeout: 5s, max_attempts: 2, backoff: {first: 50ms, max: 100ms}}
delivery: {lease: 20s}
`

// misbehavior is one provider's way, and what is to become of a push.
type misbehavior struct {
	does     string
	times    int // 0: always
	channel  string
	outcomes string // of the attempts
	status   string
	wait     time.Duration // at least, between attempts
}

// The rule's window lies between an unknown attempt and the next, for it may
// have been delivered; what Retry-After says, where it came.
var misbehaviorRows = []misbehavior{
	{"", 0, "push", "delivered", "sent", 0},
	{"", 0, "gone", "refused refused", "failed", 0},
	{"hang", 1, "push", "unknown delivered", "sent", time.Second},
	{"hang", 0, "push", "unknown unknown unknown", "failed", time.Second},
	{"hang", 0, "once", "unknown", "failed", 0},
	{"drip", 1, "push", "delivered", "sent", 0},
	{"drip-head", 1, "push", "unknown delivered", "sent", time.Second},
	{"drop", 1, "push", "unknown delivered", "sent", time.Second},
	{"drop", 0, "once", "unknown", "failed", 0},
	{"garbage", 1, "push", "unknown delivered", "sent", time.Second},
	{"garbage", 0, "once", "unknown", "failed", 0},
	{"404", 0, "push", "refused", "failed", 0},
	{"429", 1, "push", "refused delivered", "sent", 2 * time.Second},
	{"429", 1, "once", "refused delivered", "sent", 2 * time.Second},
	{"503", 1, "push", "refused delivered", "sent", 2 * time.Second},
	{"503", 1, "once", "refused delivered", "sent", 2 * time.Second},
	{"503-no-time", 1, "push", "unknown delivered", "sent", time.Second},
	{"503-no-time", 0, "once", "unknown", "failed", 0},
	{"500", 2, "push", "unknown unknown delivered", "sent", time.Second},
	{"500", 0, "once", "unknown", "failed", 0},
	{"redirect", 0, "push", "refused", "failed", 0},
	{"large", 1, "push", "delivered", "sent", 0},
	{"large-500", 1, "push", "unknown delivered", "sent", time.Second},
	{"large-500", 0, "once", "unknown", "failed", 0},
}

// TestProviders_Misbehaving: each way of a provider has its outcome, and each
// outcome its consequence, for all pushes at the same time.
func TestProviders_Misbehaving(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: providersConfig})
	b.StartAPI()
	b.Start("worker")
	ids := make([]string, len(misbehaviorRows))
	for i, m := range misbehaviorRows {
		body := object{"recipient": fmt.Sprint("r", i), "channel": m.channel, "message": object{"do": m.does, "times": m.times}}
		status, a := b.call("POST", "/v1/pushes", body)
		if status != http.StatusCreated {
			t.Fatalf("%v: %d %v", m, status, a)
		}
		ids[i] = a["id"].(string)
	}
	for i, m := range misbehaviorRows {
		var push object
		b.until(fmt.Sprintf("%v ends", m), func() bool {
			_, push = b.call("GET", "/v1/pushes/"+ids[i], nil)
			return push["status"] == "sent" || push["status"] == "failed"
		})
		m.check(b, push)
	}
	for _, one := range b.provider.Arrivals() {
		if one.Key != one.Push || !one.Signed || one.Does == "followed" {
			t.Errorf("the provider got %+v", one)
		}
	}
	b.wantAudited()
}

// check holds a push that has ended to its row.
func (m misbehavior) check(b *bundle, push object) {
	var outcomes []string
	for _, s := range push["sends"].([]any) {
		outcomes = append(outcomes, s.(object)["outcome"].(string))
	}
	if got := strings.Join(outcomes, " "); got != m.outcomes || push["status"] != m.status {
		b.t.Errorf("%v: it ended %v after %s", m, push["status"], got)
	}
	var came []time.Time
	for _, one := range b.provider.Arrivals() {
		if one.Push == push["id"] {
			came = append(came, one.At)
		}
	}
	if m.channel != "gone" && len(came) != len(outcomes) {
		b.t.Errorf("%v: it came to the provider %d times", m, len(came))
	}
	for i := 1; i < len(came); i++ {
		if pause := came[i].Sub(came[i-1]); pause < m.wait {
			b.t.Errorf("%v: another attempt after %s", m, pause)
		}
	}
	// The failed pushes have given their places back.
	_, a := b.call("POST", "/v1/quota/check", object{"recipient": push["recipient"], "channel": m.channel, "send_at": push["send_at"]})
	if free := a["allowed"]; free != (m.status == "failed") {
		b.t.Errorf("%v: the place is free: %v", m, free)
	}
	if unknown := slices.Contains(outcomes, "unknown"); push["possibly_delivered"] != unknown {
		b.t.Errorf("%v: possibly_delivered is %v", m, push["possibly_delivered"])
	}
}
