package app

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// stale returns another process's API on the same servers, which notices no changes of channels by itself.
func (b *ownBundle) stale() caller {
	b.t.Helper()
	a, err := Open(b.t.Context(), b.app.cfg, slog.New(slog.DiscardHandler))
	testenv.Check(b.t, err)
	server := httptest.NewServer(a.handler())
	b.t.Cleanup(func() {
		server.Close()
		testenv.Check(b.t, a.Close())
	})
	return caller{b.t, server.URL, b.key}
}

// TestTenantChannels_DeletedElsewhere: a process that has not noticed the deletion of a channel books no push that can never be sent. It takes
// the operator's channel of that name only if the tenant may use it.
func TestTenantChannels_DeletedElsewhere(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	to := func(recipient, channel string) string {
		return fmt.Sprintf(`{"recipient": %q, "channel": %q, "message": {"body": "x"}, "send_at": %q}`, recipient, channel, later)
	}
	// deleted returns another process that does not know yet that the channel is deleted.
	deleted := func(channel string) caller {
		b.put(channel, "")
		other := b.stale()
		if list := other.text("GET", "/v1/channels", ""); !strings.Contains(list, `{"name":"`+channel+`","owner":"tenant"`) {
			t.Fatalf("the other process lists %s", list)
		}
		if p := b.ask("DELETE", "/v1/channels/"+channel+"?pushes=cancel", ""); p["status"] != nil {
			t.Fatalf("the deletion: %v", p)
		}
		return other
	}
	for _, channel := range []string{"mine", "limited"} {
		for _, query := range []string{"", "?validate_only=true"} {
			p := deleted(channel).ask("POST", "/v1/pushes"+query, to("late", channel))
			if p["status"] != 422.0 || !strings.Contains(fmt.Sprint(p), "body.channel") || !strings.Contains(fmt.Sprint(p), "unknown channel; the channels are: push") {
				t.Errorf("%s%s: a push after the deletion: %v", channel, query, p)
			}
		}
		batch := deleted(channel).text("POST", "/v1/pushes/batch", `{"pushes": [`+to("one-"+channel, channel)+`, `+to("two-"+channel, "push")+`]}`)
		if !strings.Contains(batch, "unknown channel") || !strings.Contains(batch, `"scheduled"`) {
			t.Errorf("%s: a batch: %s", channel, batch)
		}
	}
	if n := testenv.Query[int](t, string(b.app.cfg.DatabaseURL), `SELECT count(*) FROM pushes`); n != 2 {
		t.Errorf("%d pushes are stored, want one of each batch", n)
	}
	if p := deleted("push").ask("POST", "/v1/pushes", `{"recipient": "operators", "channel": "push", "message": {"body": "x"}}`); p["status"] != "scheduled" {
		t.Fatalf("a push through the operator's channel: %v", p)
	}
	b.arrives(b.operator, "operators")
}

// TestTenantChannels_DeletingElsewhere: while a deletion waits for an attempt, no process books pushes for the channel, not even if it hides
// one of the operator, also after a deletion that may not cancel pushes failed. The number of the pushes that were canceled is in the answer of each request, and in the audit log.
func TestTenantChannels_DeletingElsewhere(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(goOn) })
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(begun)
		<-goOn
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(end)
	if c := b.ask("PUT", "/v1/channels/push", fmt.Sprintf(`{"type": "webhook", "url": %q, "timeout": "25s"}`, slow.URL)); c["owner"] != "tenant" {
		t.Fatalf("%v", c)
	}
	other := b.stale()
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for i := range 4 {
		if p := other.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": "r%d", "channel": "push", "message": {"body": "x"}, "send_at": %q}`, i, later)); p["status"] != "scheduled" {
			t.Fatalf("%v", p)
		}
	}
	b.submit(b.caller, "push", "slow")
	<-begun
	p := b.ask("DELETE", "/v1/channels/push?pushes=cancel", "")
	if detail := fmt.Sprint(p["detail"]); p["type"] != "urn:sendquota:problem:channel-in-use" || p["pushes"] != 1.0 || p["canceled"] != 4.0 ||
		!strings.Contains(detail, "attempt under way; repeat the request") || strings.Contains(detail, "pushes=cancel") {
		t.Errorf("a deletion that waits for an attempt: %v", p)
	}
	if p := b.ask("DELETE", "/v1/channels/push", ""); p["type"] != "urn:sendquota:problem:channel-in-use" || p["pushes"] != 1.0 {
		t.Errorf("a deletion that may not cancel meanwhile: %v", p)
	}
	for who, c := range map[string]caller{"this process": b.caller, "another one": other} {
		p := c.ask("POST", "/v1/pushes", `{"recipient": "late", "channel": "push", "message": {"body": "x"}}`)
		if p["status"] != 422.0 || !strings.Contains(fmt.Sprint(p), "is being deleted; try again") {
			t.Errorf("%s answers a push with %v", who, p)
		}
	}
	end()
	if p := b.ask("DELETE", "/v1/channels/push?pushes=cancel", ""); p["canceled"] != 4.0 {
		t.Errorf("the repeated deletion: %v", p)
	}
	if log := b.text("GET", "/v1/audit-log?action=channel.delete", ""); strings.Count(log, `"channel.delete"`) != 1 || !strings.Contains(log, `"canceled":{"to":4}`) {
		t.Errorf("the audit log: %s", log)
	}
}

// TestTenantChannels_ConcurrentPuts: changes of one channel follow each other; none is refused because of another one.
func TestTenantChannels_ConcurrentPuts(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("mine", `, "secret": "MARKSECRET0123456789"`)
	const puts = 30
	answers := make(chan map[string]any, puts)
	for i := range puts {
		go func() {
			answers <- b.ask("PUT", "/v1/channels/mine", fmt.Sprintf(`{"type": "webhook", "timeout": "%dms"}`, 1000+i))
		}()
	}
	for range puts {
		if p := <-answers; p["owner"] != "tenant" || p["secret"] == nil {
			t.Errorf("a change beside others: %v", p)
		}
	}
	if log := b.text("GET", "/v1/audit-log?action=channel.change&page_size=100", ""); strings.Count(log, `"channel.change"`) != puts {
		t.Errorf("the audit log has %d changes", strings.Count(log, `"channel.change"`))
	}
}
