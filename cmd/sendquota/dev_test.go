package main

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/config"
)

// TestInvite: the link leads to where the console is, also where that is not the address of the API.
func TestInvite(t *testing.T) {
	for _, row := range []struct{ url, addr, want string }{
		{"", "", "http://127.0.0.1:8080/console"},
		{"", "127.0.0.1:8090", "http://127.0.0.1:8090/console"},
		{"https://console.example.com", "127.0.0.1:8090", "https://console.example.com/console"},
	} {
		for _, link := range []string{"", "TOKEN"} {
			var out strings.Builder
			cfg := config.Config{Console: config.Console{PublicURL: row.url, Addr: row.addr}}
			invite(&out, cfg, "127.0.0.1:8080", link)
			if !strings.Contains(out.String(), " "+row.want) {
				t.Errorf("%+v, link %q: %s", row, link, out.String())
			}
		}
	}
}
