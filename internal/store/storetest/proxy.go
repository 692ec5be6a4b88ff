package storetest

import (
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv/faultproxy"
)

// Lossy is a proxy to Postgres that can lose replies.
type Lossy struct {
	*faultproxy.Proxy
	URL  string
	lost int
}

// newProxy returns a proxy to the server of a database.
func newProxy(t testing.TB, database string) *Lossy {
	t.Helper()
	cfg, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	w, err := faultproxy.New(net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: w.Addr(), Path: "/" + cfg.Database, RawQuery: "sslmode=disable"}
	return &Lossy{Proxy: w, URL: u.String()}
}

// LoseNext loses the next reply with a command tag.
func (w *Lossy) LoseNext(tag string) {
	w.lost += w.Lost()
	w.Lose(1, tag+"\x00")
}

// WantLost fails unless n replies have been lost by now.
func (w *Lossy) WantLost(t *testing.T, n int) {
	t.Helper()
	if got := w.lost + w.Lost(); got != n {
		t.Errorf("%d replies were lost, want %d: nothing was tested", got, n)
	}
}

// SetupProxy returns a bundle with a store that talks to Postgres through a proxy.
func SetupProxy(t *testing.T) (*Bundle, *Lossy) {
	t.Helper()
	return ThroughProxy(t, Setup(t))
}

func ThroughProxy(t *testing.T, b *Bundle) (*Bundle, *Lossy) {
	t.Helper()
	w := newProxy(t, b.URL)
	b.Store = OpenURL(t, w.URL, store.Config{})
	return b, w
}
