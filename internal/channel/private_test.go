package channel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// The addresses are refused at the dial, whatever form the URL gives them.
func TestWebhook_PrivateAddresses(t *testing.T) {
	p := newProvider(t, answers(200, ""))
	_, port, _ := strings.Cut(p.listener.Addr().String(), ":")
	for host, class := range map[string]string{
		"127.0.0.1":          "loopback",
		"[::ffff:127.0.0.1]": "loopback",
		"localhost":          "loopback",
		"0.0.0.0":            "unspecified",
		"10.1.2.3":           "private",
		"172.16.1.1":         "private",
		"192.168.1.1":        "private",
		"100.64.1.1":         "carrier-grade NAT",
		"169.254.1.1":        "link-local",
		"169.254.169.254":    "a cloud's metadata service",
		"224.0.0.1":          "multicast",
		"240.0.0.1":          "reserved",
	} {
		t.Run(host, func(t *testing.T) {
			w, err := NewWebhook(WebhookConfig{URL: "http://" + host + ":" + port})
			if err != nil {
				t.Fatal(err)
			}
			want := Result{Outcome: push.Refused, Error: "no connection: the host's address is " + class +
				", which is not allowed; see the setting allow_private_addresses"}
			if diff := cmp.Diff(want, w.Send(t.Context(), testPush(), 1), notWhen); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	if _, conns := p.seen(); conns != 0 {
		t.Errorf("the provider got %d connections", conns)
	}
}
