package e2e

import (
	"testing"

	"github.com/sendquota/sendquota/internal/testenv/faultproxy"
)

// newProxy starts a proxy to the server of a URL, and returns the URL through
// that.
func newProxy(t *testing.T, server string) (*faultproxy.Proxy, string) {
	t.Helper()
	p, through, err := faultproxy.NewURL(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, through
}
