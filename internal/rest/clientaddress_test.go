package rest

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestClientAddress: X-Forwarded-For counts as far as trusted proxies wrote it.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, row := range []struct {
		peer, forwarded, want string
	}{
		{"192.0.2.1:1", "", "192.0.2.1"},
		{"192.0.2.1:1", "198.51.100.1", "192.0.2.1"},                                      // forged
		{"192.0.2.1:1", "198.51.100.1, 10.0.0.1", "192.0.2.1"},                            // forged
		{"10.0.0.1:1", "", "10.0.0.1"},                                                    // a proxy's own
		{"10.0.0.1:1", "198.51.100.1", "198.51.100.1"},                                    // behind a proxy
		{"10.0.0.1:1", "203.0.113.9, 198.51.100.1", "198.51.100.1"},                       // forged before the proxy
		{"10.0.0.1:1", "203.0.113.9, 198.51.100.1, 10.9.9.9", "198.51.100.1"},             // behind two proxies
		{"10.0.0.1:1", "10.2.2.2, 10.9.9.9", "10.2.2.2"},                                  // all trusted
		{"10.0.0.1:1", "198.51.100.1, nonsense", "10.0.0.1"},                              // not readable: the last who is known
		{"10.0.0.1:1", "198.51.100.1, nonsense, 10.3.3.3", "10.3.3.3"},                    //
		{"10.0.0.1:1", "127.0.0.1", "127.0.0.1"},                                          // a proxy says so
		{"[::ffff:10.0.0.1]:1", "::ffff:198.51.100.1", "198.51.100.1"},                    // mapped
		{"10.0.0.1:1", "198.51.100.1:4711", "198.51.100.1"},                               // with a port
		{"10.0.0.1:1", "[2001:db8:1:2:3::4]:4711", "2001:db8:1:2::/64"},                   //
		{"10.0.0.1:1", "[2001:db8:1:2:3::4]", "2001:db8:1:2::/64"},                        //
		{"[2001:db8:1:2:9::1]:1", "198.51.100.1", "2001:db8:1:2::/64"},                    // one client has many
		{"[fd00::1]:1", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"},                         //
		{"[fe80::1%eth0]:1", "", "fe80::/64"},                                             //
		{"10.0.0.1:1", " , ,198.51.100.1", "198.51.100.1"},                                //
		{"10.0.0.1:1", strings.Repeat("1.1.1.1,", 5000) + "198.51.100.1", "198.51.100.1"}, //
		{"@", "198.51.100.1", "unknown"},                                                  // a socket without addresses
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = row.peer
		if row.forwarded != "" {
			r.Header.Set("X-Forwarded-For", row.forwarded)
		}
		a := &API{cfg: Config{Callers: CallerLimits{TrustedProxies: trusted}}}
		if got := a.clientAddress(r); got != row.want {
			t.Errorf("%s, forwarded for %.60s: %s, want %s", row.peer, row.forwarded, got, row.want)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header["X-Forwarded-For"] = []string{"203.0.113.9", "198.51.100.1, 10.1.1.1"}
	if got := (&API{cfg: Config{Callers: CallerLimits{TrustedProxies: trusted}}}).clientAddress(r); got != "198.51.100.1" {
		t.Errorf("two headers: %s", got)
	}
}
