package outbound

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// HostFault returns why requests to the host of a URL are never allowed, or "", as far as that is known without
// resolving it. private reports whether the only fault is that the host is not public. It recognizes an address in
// every form that resolvers accept: decimal, octal, hex, shortened, mapped. The addresses of a name are checked each
// time it is dialed.
func HostFault(host string) (fault string, private bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, c := range []byte(host) {
		if c <= ' ' || c > '~' {
			return "must have a host in ASCII; write an international name in punycode", false
		}
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return notPublic("loopback"), true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		var numeric bool
		if a, numeric = legacyAddress(host); !numeric {
			return "", false
		}
		if !a.IsValid() {
			return "must have a host that is a name or a valid address", false
		}
	}
	if class := theGuard().classOf(a); class != "" {
		return notPublic(class), true
	}
	return "", false
}

func notPublic(class string) string {
	return "must have a public host; the address of this one is " + class
}

// legacyAddress parses an IPv4 address as inet_aton does: one to four numbers, each decimal, octal or hex; the last one
// fills the remaining bytes. A host whose last part is a number is never a name; if it is no address either, the result
// is invalid.
func legacyAddress(host string) (a netip.Addr, numeric bool) {
	parts := strings.Split(host, ".")
	if _, ok := legacyNumber(parts[len(parts)-1]); !ok {
		return a, false
	}
	if len(parts) > 4 {
		return a, true
	}
	var sum uint64
	for i, part := range parts {
		n, ok := legacyNumber(part)
		most := uint64(1) << 8
		if i == len(parts)-1 {
			most = 1 << (8 * (5 - len(parts)))
		}
		if !ok || n >= most {
			return a, true
		}
		if i < len(parts)-1 {
			n <<= 8 * (3 - i)
		}
		sum += n
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(sum)))), true
}

// legacyNumber parses digits in the base of their prefix: 0x, 0 or none. Digits that are too large or not octal after
// all are a number that no address has room for.
func legacyNumber(s string) (n uint64, ok bool) {
	digits, base := s, 10
	switch {
	case strings.HasPrefix(s, "0x"):
		digits, base = s[2:], 16
	case len(s) > 1 && s[0] == '0':
		base = 8
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err == nil || base == 16 && digits == "" {
		return n, true
	}
	return 1 << 40, s != "" && strings.Trim(s, "0123456789") == "" || base == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}
