package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestChannels_Offered: a tenant's list has neither channels that the operator offers to others, nor deleted ones, and these cannot be paused
// for the tenant. A shell without the key of the programs does not call a channel broken that works.
func TestChannels_Offered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := b.file("offered.yaml", "tenant_channels: {types: [log, webhook]}\nchannels:\n  log: {type: log}\n  vip: {type: log, offered_to: [other]}\n")
	with := func(more ...string) []string {
		return append(append(b.env[:len(b.env):len(b.env)], "SENDQUOTA_CONFIG="+file), more...)
	}
	run := func(env []string, args ...string) (string, int) {
		var out strings.Builder
		said, status := tool(t, env, &out, args...)
		return out.String() + said, status
	}
	views := []channelhealth.View{{Channel: "vip", State: channelhealth.Working}, {Channel: "*gone", Tenant: b.tenant, State: channelhealth.Working}, {Channel: "log", State: channelhealth.Working}}
	testenv.Check(t, b.st.ReplaceChannelViews(t.Context(), uuid.New(), views))
	for _, more := range []string{"", "--json"} {
		args := append([]string{"channels", "list", "--tenant", "acme"}, strings.Fields(more)...)
		if said, status := run(with(), args...); status != 0 || strings.Contains(said, "vip") || strings.Contains(said, "gone") || !strings.Contains(said, "log") {
			t.Errorf("%q: %d %s", args, status, said)
		}
	}
	if said, status := run(with(), "channels", "list"); status != 0 || !strings.Contains(said, "vip") || strings.Contains(said, "gone") {
		t.Errorf("the list of all tenants: %d %s", status, said)
	}
	if said, status := run(with(), "pause", "--tenant", "acme", "--channel", "vip"); status != 1 || !strings.Contains(said, "unknown channel") {
		t.Errorf("a pause of a channel that is not offered: %d %s", status, said)
	}
	if said, status := run(with(), "pause", "--all-tenants", "--channel", "vip"); status != 0 {
		t.Errorf("a pause for all tenants: %d %s", status, said)
	}
	hook := b.file("hook.json", `{"type": "webhook", "url": "https://hook.example.com/"}`)
	if said, status := run(with(), "channels", "set", "--tenant", "acme", "hook", hook); status != 0 {
		t.Fatalf("%d %s", status, said)
	}
	for _, key := range []string{"", seal.NewKey()} {
		said, status := run(with(seal.KeyVariable+"="+key), "channels", "list", "--tenant", "acme")
		if status != 0 || strings.Contains(said, "sealed by another key") || !strings.Contains(said, "unknown") || !strings.Contains(said, "does not know whether the channel can be opened") {
			t.Errorf("with the key %q: %d %s", key, status, said)
		}
	}
}
