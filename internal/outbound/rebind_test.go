package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// names answers every query for an IPv4 address with a set answer that must not be cached, and any other query with
// nothing.
type names struct{ answer atomic.Pointer[[]netip.Addr] }

func (n *names) serve(conn net.PacketConn) {
	packet := make([]byte, 512)
	for {
		_, from, err := conn.ReadFrom(packet)
		if err != nil {
			return
		}
		end := 12 // of the name, a chain of labels, and of type and class behind it
		for packet[end] != 0 {
			end += int(packet[end]) + 1
		}
		isA := packet[end+2] == 1
		end += 5
		reply := append([]byte{packet[0], packet[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, packet[12:end]...)
		for _, a := range *n.answer.Load() {
			if isA {
				ip := a.As4()
				reply[7]++
				reply = append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
			}
		}
		_, _ = conn.WriteTo(reply, from)
	}
}

// TestGuard_Rebinding: a name that leads to a public address at first, or among
// others, and then to the inner network, leads nowhere. Each request asks DNS
// itself, and is judged by the very address that it would connect to.
func TestGuard_Rebinding(t *testing.T) {
	var reached atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inner.Close()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	dns := &names{}
	go dns.serve(conn)
	loopback, public := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("8.8.8.8")
	client := func(allowPrivate bool) *Client {
		c := New(Config{Timeout: 20 * time.Second, AllowPrivateAddresses: allowPrivate})
		d := NewDialer(10*time.Second, allowPrivate)
		d.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
		}}
		c.transport.(*http1).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if slices.Contains(*dns.answer.Load(), public) { // an address that may never answer
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				ctx = short
			}
			return d.DialContext(ctx, network, address)
		}
		return c
	}
	_, port, _ := net.SplitHostPort(inner.Listener.Addr().String())
	get := func(c *Client) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://rebinding.example:"+port, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Body = io.NopCloser(strings.NewReader(""))
		_, err = c.Do(t.Context(), req)
		return err
	}
	careful := client(false)
	for _, answer := range [][]netip.Addr{{public}, {loopback}, {public, loopback}, {loopback, public}, {loopback}} {
		dns.answer.Store(&answer)
		err := get(careful)
		if len(answer) == 1 && answer[0] == loopback {
			if f, ok := errors.AsType[*Failure](err); !ok || f.Sent || !strings.Contains(f.Reason, "loopback") {
				t.Errorf("%v: %v", answer, err)
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the inner network", n)
	}
	dns.answer.Store(&[]netip.Addr{loopback})
	if err := get(client(true)); err != nil || reached.Load() != 1 {
		t.Errorf("where it is allowed: %v, reached %d times", err, reached.Load())
	}
}
