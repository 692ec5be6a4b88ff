package outbound

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
)

// guard keeps requests out of the inner network. The dialer calls it when the name is resolved and the socket is about
// to connect, so that no name, redirect or change of DNS can bypass it.
type guard struct {
	classes []addressClass
	public6 netip.Prefix // all addresses for global use in IPv6
	nat64   netip.Prefix // IPv4 through a translator: the last 32 bits count
}

// addressClass is a range that is not public, after the special-purpose address registries of the IANA (RFC 6890) and
// additions of clouds.
type addressClass struct {
	prefix netip.Prefix
	name   string
}

// forbiddenAddressError: a host has a forbidden address.
type forbiddenAddressError struct{ class string }

func (e *forbiddenAddressError) Error() string {
	return fmt.Sprintf("the host's address is %s, which is not allowed; see the setting allow_private_addresses", e.class)
}

// theGuard is shared by all clients, because it never changes, and takes thirty ranges to build.
var theGuard = sync.OnceValue(newGuard)

func newGuard() *guard {
	g := &guard{public6: netip.MustParsePrefix("2000::/3"), nat64: netip.MustParsePrefix("64:ff9b::/96")}
	for _, c := range []struct{ prefix, name string }{
		{"0.0.0.0/8", "unspecified"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "carrier-grade NAT"},
		{"127.0.0.0/8", "loopback"},
		{"168.63.129.16/32", "a cloud's metadata service"}, // Azure's, outside the special ranges
		{"169.254.169.254/32", "a cloud's metadata service"},
		{"169.254.0.0/16", "link-local"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "reserved"},
		{"192.0.2.0/24", "documentation"},
		{"192.31.196.0/24", "reserved"},
		{"192.52.193.0/24", "reserved"},
		{"192.88.99.0/24", "6to4"},
		{"192.168.0.0/16", "private"},
		{"192.175.48.0/24", "reserved"},
		{"198.18.0.0/15", "benchmarking"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"224.0.0.0/4", "multicast"},
		{"255.255.255.255/32", "broadcast"},
		{"240.0.0.0/4", "reserved"},
		{"::/128", "unspecified"},
		{"::1/128", "loopback"},
		{"fc00::/7", "private"},
		{"fe80::/10", "link-local"},
		{"ff00::/8", "multicast"},
		{"2001::/23", "reserved"}, // Teredo and other protocols
		{"2001:db8::/32", "documentation"},
		{"2002::/16", "6to4"}, // contains any IPv4 address, and is out of use
		{"3fff::/20", "documentation"},
	} {
		g.classes = append(g.classes, addressClass{netip.MustParsePrefix(c.prefix), c.name})
	}
	return g
}

// control has the signature of [net.Dialer]'s ControlContext. The address is the resolved one, with its port.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	class := "unreadable"
	if a, err := netip.ParseAddrPort(address); err == nil {
		class = g.classOf(a.Addr())
	}
	if class == "" {
		return nil
	}
	return &forbiddenAddressError{class}
}

// classOf returns the name of an address' range if it is not public, or else "".
func (g *guard) classOf(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	if g.nat64.Contains(a) {
		b := a.As16()
		return g.classOf(netip.AddrFrom4([4]byte(b[12:])))
	}
	for _, c := range g.classes {
		if c.prefix.Contains(a) {
			return c.name
		}
	}
	if a.Is6() && !g.public6.Contains(a) {
		return "reserved"
	}
	return ""
}
