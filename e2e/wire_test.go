package e2e

import (
	"net/url"
	"testing"

	"github.com/sendquota/sendquota/internal/wire"
)

// newWire returns a wire to the server of a database, and the database's URL by
// way of it.
func newWire(t *testing.T, database string) (*wire.Wire, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	w, err := wire.New(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	u.Host = w.Addr()
	return w, u.String()
}
