package rest

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// FuzzClientAddress holds that a client without a trusted proxy is known by its own address whatever it writes, and
// that behind one, what it writes itself before the proxy changes nothing.
func FuzzClientAddress(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.1", "10.0.0.1, 10.0.0.2", "[::1]:80", ",,,", "unknown", "fe80::1%eth0", "198.51.100.1\r\nX: y", "::ffff:10.0.0.1"} {
		f.Add(seed)
	}
	a := &API{cfg: Config{Callers: CallerLimits{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}
	from := func(peer, forwarded string) string {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header["X-Forwarded-For"] = []string{forwarded}
		return a.clientAddress(r)
	}
	f.Fuzz(func(t *testing.T, forged string) {
		if got := from("192.0.2.1:1", forged); got != "192.0.2.1" {
			t.Errorf("%q: %s", forged, got)
		}
		if got := from("10.0.0.1:1", forged+", 198.51.100.7"); got != "198.51.100.7" {
			t.Errorf("%q before the proxy: %s", forged, got)
		}
		if got := from("10.0.0.1:1", forged); strings.ContainsAny(got, " ,\r\n%[]") {
			t.Errorf("%q: %q", forged, got)
		}
	})
}
