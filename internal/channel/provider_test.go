package channel

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// The marks stand where personal data and secrets stand. No result and no log
// line may hold one of them.
const (
	markMessage   = "MARKMESSAGE"
	markMetadata  = "MARKMETADATA"
	markRecipient = "MARKRECIPIENT"
	markTo        = "MARKADDRESS"
	markNumber    = "+4599887766"
	markDevice    = "deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef"
	markSecret    = "MARKSECRET"
	markUser      = "MARKUSER"
	markPassword  = "MARKPASSWORD"
	markQuery     = "MARKQUERY"
)

func marks() []string {
	return []string{markMessage, markMetadata, markRecipient, markTo, markNumber, markDevice, markSecret, markUser, markPassword, markQuery}
}

func testPush() push.Push {
	return push.Push{
		Content: push.Content{Recipient: markRecipient, Channel: "push", Category: "marketing", To: markTo, Message: json.RawMessage(`{"title":"` + markMessage + `","body":"` + markMessage + `"}`), Metadata: json.RawMessage(`{"campaign":"` + markMetadata + `"}`)},
		ID:      uuid.MustParse("01900000-0000-7000-8000-000000000042"), SendAt: time.Date(2026, 12, 1, 9, 0, 0, 0, time.FixedZone("", 3600)),
	}
}

// received is one request as the provider read it.
type received struct {
	*http.Request
	body []byte
}

// behavior is a provider's behavior after it has read a request. It reports whether the connection stays open. Stop is
// closed when the test ends.
type behavior func(c *net.TCPConn, r received, stop <-chan struct{}) bool

// provider is a server on loopback with full command of its connections: it
// can reset, hang, drip and talk nonsense.
type provider struct {
	listener net.Listener
	behavior behavior
	deaf     bool // closes each connection as soon as it is written to
	stop     chan struct{}

	mu       sync.Mutex
	conns    []net.Conn
	requests []received
}

func newProvider(t *testing.T, b behavior) *provider {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{listener: listener, behavior: b, deaf: b == nil, stop: make(chan struct{})}
	var running sync.WaitGroup
	running.Go(func() { p.accept(&running) })
	t.Cleanup(func() {
		close(p.stop)
		listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

func (p *provider) accept(running *sync.WaitGroup) {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, c)
		p.mu.Unlock()
		running.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

func (p *provider) serve(c *net.TCPConn) {
	defer c.Close()
	if p.deaf {
		_, _ = c.Read(make([]byte, 1))
		return
	}
	for in := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r := received{req, body}
		p.mu.Lock()
		p.requests = append(p.requests, r)
		p.mu.Unlock()
		if !p.behavior(c, r, p.stop) {
			return
		}
	}
}

func (p *provider) url() string { return "http://" + p.listener.Addr().String() }

// seen returns the requests read until now, and the number of connections.
func (p *provider) seen() ([]received, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests, len(p.conns)
}

// answers is a provider that writes a whole answer and keeps the connection.
func answers(status int, body string, headers ...string) behavior {
	head := fmt.Sprintf("HTTP/1.1 %d Text\r\nContent-Length: %d\r\n", status, len(body))
	for _, h := range headers {
		head += h + "\r\n"
	}
	return writes(head+"\r\n"+body, true)
}

// writes is a provider that writes text as it stands.
func writes(text string, keep bool) behavior {
	return func(c *net.TCPConn, _ received, _ <-chan struct{}) bool {
		_, err := io.WriteString(c, text)
		return keep && err == nil
	}
}

// hangs is a provider that says nothing more after text.
func hangs(text string) behavior {
	return func(c *net.TCPConn, _ received, stop <-chan struct{}) bool {
		io.WriteString(c, text)
		<-stop
		return false
	}
}

// drips is a provider whose body never ends.
func drips(c *net.TCPConn, _ received, stop <-chan struct{}) bool {
	io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return false
		case <-tick.C:
			if _, err := c.Write([]byte(" ")); err != nil {
				return false
			}
		}
	}
}

// resets is a provider that reads the request and tears the connection down.
func resets(c *net.TCPConn, _ received, _ <-chan struct{}) bool {
	c.SetLinger(0)
	return false
}

// drops is a provider that reads the request and hangs up.
func drops(*net.TCPConn, received, <-chan struct{}) bool { return false }

// echoes is a provider that writes what it was sent after head, where
// net/http expects something else and may quote it.
func echoes(head string) behavior {
	return func(c *net.TCPConn, r received, _ <-chan struct{}) bool {
		io.WriteString(c, head+string(r.body)+"\r\n\r\n")
		return false
	}
}
