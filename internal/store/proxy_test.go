package store_test

import (
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv/faultproxy"
)

// lossy is a way to Postgres that can lose replies.
type lossy struct {
	*faultproxy.Proxy
	url  string
	lost int
}

// newProxy returns a proxy to the server of a database.
func newProxy(t testing.TB, database string) *lossy {
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
	return &lossy{Proxy: w, url: u.String()}
}

// loseNext loses the next reply with such a command tag.
func (w *lossy) loseNext(tag string) {
	w.lost += w.Lost()
	w.Lose(1, tag+"\x00")
}

// wantLost wants so many replies to have been lost by now.
func (w *lossy) wantLost(t *testing.T, n int) {
	t.Helper()
	if got := w.lost + w.Lost(); got != n {
		t.Errorf("%d replies were lost, want %d: nothing was tested", got, n)
	}
}
