package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// text is a request of the tenant, as it goes over the wire. An empty key stands for
// none.
func (b *bundle) text(method, path, key, body string) []byte {
	lines := []string{method + " " + path + " HTTP/1.1", "Host: sendquota", "Content-Type: application/json"}
	if key != "" {
		lines = append(lines, "Authorization: Bearer "+key)
	}
	if method == http.MethodPost {
		lines = append(lines, "Content-Length: "+strconv.Itoa(len(body)))
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + body)
}

// crowd is connections of callers that are slow on purpose.
type crowd struct {
	b     *bundle
	mu    sync.Mutex
	conns []net.Conn
	sends sync.WaitGroup
}

// send opens a connection that takes little at a time, and sends bytes on it. It does
// not wait until they are taken.
func (c *crowd) send(bytes []byte) net.Conn {
	c.b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.b.api, "http://"))
	if err != nil {
		panic(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	c.mu.Unlock()
	c.sends.Go(func() { _, _ = conn.Write(bytes) }) // which may end with the connection
	return conn
}

// ask sends a request on n connections, and returns how many were answered with each status. It reads only the first
// line of an answer. A connection without an answer counts as 0, if enough others have one.
func (c *crowd) ask(n int, request []byte, enough int) map[int]int {
	c.b.t.Helper()
	answers, status := make(chan int, n), map[int]int{0: n}
	for range n {
		conn := c.send(request)
		go func() { answers <- statusOf(conn) }()
	}
	for range enough {
		select {
		case code := <-answers:
			status[code]++
			status[0]--
		case <-time.After(2 * time.Minute):
			c.b.t.Errorf("waited in vain: of %d requests were answered %v\n%.100s", n, status, request)
			return status
		}
	}
	return status
}

// statusOf reads the beginning of an answer; -1: there is none.
func statusOf(conn net.Conn) int {
	line := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, line); err != nil {
		return -1
	}
	code, _ := strconv.Atoi(string(line[9:]))
	return code
}

// leave breaks all connections.
func (c *crowd) leave() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.sends.Wait()
	c.conns = nil
}

// calm is a tenant that goes about its business, and wants to be served.
type calm struct {
	*bundle
	served atomic.Int64
	wrong  chan string
	stop   func()
}

func (b *bundle) calmly() *calm {
	c, done, over := &calm{bundle: b, wrong: make(chan string, 10)}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := c.request(i); err != nil {
				select {
				case c.wrong <- err.Error():
				default:
				}
			}
			c.served.Add(1)
		}
	}()
	c.stop = sync.OnceFunc(func() { close(done); <-over })
	b.t.Cleanup(c.stop)
	return c
}

// request submits a push, reads it, and reads a page.
func (c *calm) request(i int) error {
	a, err := c.ask("POST", "/v1/pushes", object{"recipient": fmt.Sprint("calm-", i), "send_at": time.Now().Add(24 * time.Hour), "message": object{"n": i}})
	if err != nil || a.status != http.StatusCreated {
		return fmt.Errorf("submit: %v %v", a, err)
	}
	for _, path := range []string{"/v1/pushes/" + a.body["id"].(string), "/v1/pushes?page_size=3"} {
		if a, err = c.ask("GET", path, nil); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("GET %s: %v %v", path, a, err)
		}
	}
	return nil
}

// goOn waits until the tenant was served some more.
func (c *calm) goOn() {
	c.t.Helper()
	from := c.served.Load()
	c.until("the calm tenant is served", func() bool { return c.served.Load() >= from+5 })
}
