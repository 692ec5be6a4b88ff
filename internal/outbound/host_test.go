package outbound

import (
	"strings"
	"testing"
)

func TestHostFault(t *testing.T) {
	for host, want := range map[string]string{
		"example.com":              "",
		"EXAMPLE.com.":             "",
		"8.8.8.8":                  "",
		"134744072":                "", // 8.8.8.8
		"2606:4700:4700::1111":     "",
		"127.0.0.1.example.com":    "",
		"1e100.net":                "",
		"3com":                     "",
		"localhost":                "loopback",
		"LocalHost.":               "loopback",
		"a.localhost":              "loopback",
		"127.0.0.1":                "loopback",
		"127.0.0.1.":               "loopback",
		"2130706433":               "loopback",
		"0x7f000001":               "loopback",
		"0X7F.1":                   "loopback",
		"017700000001":             "loopback",
		"0177.0.0.01":              "loopback",
		"127.1":                    "loopback",
		"127.0.1":                  "loopback",
		"0":                        "unspecified",
		"0x":                       "unspecified",
		"10.1":                     "private",
		"192.168.257":              "private",
		"169.254.169.254":          "metadata",
		"0xa9fea9fe":               "metadata",
		"2852039166":               "metadata",
		"::1":                      "loopback",
		"::ffff:127.0.0.1":         "loopback",
		"::ffff:7f00:1":            "loopback",
		"0:0:0:0:0:ffff:7f00:1":    "loopback",
		"64:ff9b::169.254.169.254": "metadata",
		"fe80::1%eth0":             "link-local",
		"fd00::1":                  "private",
		"256.0.0.1":                "valid address",
		"1.2.3.4.5":                "valid address",
		"127.0.0.08":               "valid address",
		"4294967296":               "valid address",
		"99999999999999999999999":  "valid address",
		"a.b.1":                    "valid address",
		"①②⑦.0.0.1":                "ASCII",
		"exa mple.com":             "ASCII",
		"bücher.example":           "ASCII",
	} {
		got, private := HostFault(host)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
		if private != strings.Contains(got, "must have a public host") {
			t.Errorf("%s: %q, but private is %v", host, got, private)
		}
	}
}
