package store_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// wire is a way to Postgres that can lose replies: the server has done what it
// was asked for, and the connection is gone before the answer arrives.
type wire struct {
	url    string
	server string

	mu   sync.Mutex
	lose []byte // the reply with these bytes is lost; nil: none
	lost int
}

// newWire returns a wire to the server of a database.
func newWire(t testing.TB, database string) *wire {
	t.Helper()
	cfg, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: listener.Addr().String(), Path: "/" + cfg.Database, RawQuery: "sslmode=disable"}
	w := &wire{url: u.String(), server: net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(client)
		}
	}()
	return w
}

func (w *wire) carry(client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil || w.loses(buf[:n]) {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (w *wire) loses(reply []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lose == nil || !bytes.Contains(reply, w.lose) {
		return false
	}
	w.lose = nil
	w.lost++
	return true
}

// loseNext loses the next reply with such a command tag.
func (w *wire) loseNext(tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = []byte(tag + "\x00")
}

// wantLost wants so many replies to have been lost by now.
func (w *wire) wantLost(t *testing.T, n int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != n {
		t.Errorf("%d replies were lost, want %d: nothing was tested", w.lost, n)
	}
}
