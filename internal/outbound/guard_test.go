package outbound

import (
	"net/netip"
	"testing"
)

func TestGuard_Classes(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0":                "unspecified",
		"0.1.2.3":                "unspecified",
		"10.0.0.1":               "private",
		"100.63.255.255":         "",
		"100.64.0.1":             "carrier-grade NAT",
		"100.100.100.200":        "carrier-grade NAT",
		"100.127.255.255":        "carrier-grade NAT",
		"100.128.0.0":            "",
		"127.0.0.1":              "loopback",
		"127.255.255.254":        "loopback",
		"168.63.129.16":          "a cloud's metadata service",
		"168.63.129.17":          "",
		"169.254.1.1":            "link-local",
		"169.254.169.254":        "a cloud's metadata service",
		"172.15.255.255":         "",
		"172.16.0.1":             "private",
		"172.31.255.255":         "private",
		"172.32.0.0":             "",
		"192.0.0.192":            "reserved",
		"192.0.2.1":              "documentation",
		"192.88.99.1":            "6to4",
		"192.168.1.1":            "private",
		"198.17.255.255":         "",
		"198.19.255.255":         "benchmarking",
		"198.51.100.7":           "documentation",
		"203.0.113.7":            "documentation",
		"223.255.255.255":        "",
		"224.0.0.1":              "multicast",
		"239.255.255.255":        "multicast",
		"240.0.0.1":              "reserved",
		"255.255.255.255":        "broadcast",
		"8.8.8.8":                "",
		"::":                     "unspecified",
		"::1":                    "loopback",
		"::ffff:127.0.0.1":       "loopback",
		"::ffff:169.254.169.254": "a cloud's metadata service",
		"::ffff:8.8.8.8":         "",
		"::127.0.0.1":            "reserved",
		"::ffff:0:127.0.0.1":     "reserved",
		"64:ff9b::10.0.0.1":      "private",
		"64:ff9b::7f00:1":        "loopback",
		"64:ff9b::8.8.8.8":       "",
		"64:ff9b:1::10.0.0.1":    "reserved",
		"100::1":                 "reserved",
		"2001::1":                "reserved",
		"2001:1ff::1":            "reserved",
		"2001:200::1":            "",
		"2001:db8::1":            "documentation",
		"2002:7f00:1::":          "6to4",
		"2002:808:808::":         "6to4",
		"2606:4700:4700::1111":   "",
		"3fff::1":                "documentation",
		"5f00::1":                "reserved",
		"fc00::1":                "private",
		"fd00:ec2::254":          "private",
		"fe80::1":                "link-local",
		"fe80::1%eth0":           "link-local",
		"fec0::1":                "reserved",
		"ff02::1":                "multicast",
	} {
		if got := theGuard().classOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
}

func TestGuard_Control(t *testing.T) {
	g := theGuard()
	for _, address := range []string{"127.0.0.1:80", "[::1]:443", "[fe80::1%eth0]:80", "localhost:80", "/var/run/socket", ""} {
		if g.control(t.Context(), "tcp", address, nil) == nil {
			t.Errorf("%q is allowed", address)
		}
	}
	for _, address := range []string{"8.8.8.8:80", "[2606:4700:4700::1111]:443"} {
		if err := g.control(t.Context(), "tcp", address, nil); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}
