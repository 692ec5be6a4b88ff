package outbound

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// HostFault says why no request to the host of a URL can be allowed, or nothing: what can be known without looking it
// up; and whether it is only that the host is not public. An address is recognized in every form that resolvers take:
// decimal, octal, hex, shortened, mapped. What a name leads to is only judged when it is dialed, each time.
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

// legacyAddress reads an IPv4 address as inet_aton does: one to four numbers, each decimal, octal or hex, of which
// the last fills what the others leave. A host whose last part is a number is never a name; if it is no address
// either, the result is invalid.
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

// legacyNumber reads digits in the base that their beginning tells: 0x, 0 or none. What is made of digits, but too
// large or not octal after all, is a number that no address has room for.
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
