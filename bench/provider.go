package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// provider accepts pushes over HTTP and records their arrivals. It supports only the part of HTTP/1.1 that its clients
// need: it stands for a remote machine, and must take little processor time from the measured systems.
type provider struct {
	mu       sync.Mutex
	arrivals []arrival
}

type arrival struct {
	push string
	at   time.Time
}

// runProvider is the provider's process.
func runProvider(t testenv.T) { new(provider).listen(t) }

// listen serves until this process receives a signal to stop.
func (p *provider) listen(t testenv.T) {
	listener, err := net.Listen("tcp", os.Getenv("ADDR"))
	testenv.Check(t, err)
	context.AfterFunc(t.Context(), func() { _ = listener.Close() })
	p.accept(listener)
}

func (p *provider) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go p.serve(conn)
	}
}

// serve answers the requests of one connection until that is closed.
func (p *provider) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 8<<10)
	var out []byte
	for {
		method, path, id, err := readRequest(r)
		at := time.Now()
		if err != nil {
			return
		}
		body := p.answer(method, path, id, at)
		out = fmt.Appendf(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// readRequest reads one request to the end of its body.
func readRequest(r *bufio.Reader) (method, path, id string, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", "", "", err
	}
	words := strings.Fields(string(line))
	if len(words) != 3 {
		return "", "", "", errors.New("not an HTTP request")
	}
	length := 0
	err = readHeader(r, func(name, value []byte) (err error) {
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(value))
		case bytes.EqualFold(name, []byte("Idempotency-Key")):
			id = string(value)
		}
		return err
	})
	if err == nil {
		_, err = r.Discard(length)
	}
	return words[0], words[1], id, err
}

// note remembers an arrival, and returns how many there are.
func (p *provider) note(id string, at time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrivals = append(p.arrivals, arrival{push: id, at: at})
	return len(p.arrivals)
}

// answer accepts a push, or lists the accepted ones.
func (p *provider) answer(method, path, id string, at time.Time) []byte {
	if method == http.MethodPost {
		return fmt.Appendf(nil, `{"id":"p-%d"}`, p.note(id, at))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if path == "/count" {
		return strconv.AppendInt(nil, int64(len(p.arrivals)), 10)
	}
	var lines []byte
	for _, a := range p.arrivals {
		lines = fmt.Appendf(lines, "%s %d\n", a.push, a.at.UnixNano())
	}
	p.arrivals = nil
	return lines
}

// providerClient asks the provider's process.
type providerClient struct {
	testenv.T
	addr string
}

func (l *lab) startProvider() providerClient {
	c := providerClient{l.T, testenv.FreeAddr(l)}
	p := l.startRole("provider", "role-provider", "ADDR="+c.addr)
	l.check(p.AwaitListen(l.Context(), c.addr))
	return c
}

func (c providerClient) url() string { return "http://" + c.addr + "/" }

// get reads a page of any HTTP server.
func get(t testenv.T, url string) string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	testenv.Check(t, err)
	res, err := http.DefaultClient.Do(req)
	testenv.Check(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	testenv.Check(t, err)
	return string(text)
}

// count returns the number of pushes that have arrived since the last take.
func (c providerClient) count() int {
	n, err := strconv.Atoi(get(c, c.url()+"count"))
	testenv.Check(c, err)
	return n
}

// take returns the arrivals since the last take.
func (c providerClient) take() (all []arrival) {
	for line := range strings.Lines(get(c, c.url()+"arrivals")) {
		id, at, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ns, err := strconv.ParseInt(at, 10, 64)
		testenv.Check(c, err)
		all = append(all, arrival{push: id, at: time.Unix(0, ns)})
	}
	return all
}

// once fails if the arrivals are not n different pushes.
func once(arrivals []arrival, n int) error {
	distinct := map[string]bool{}
	for _, a := range arrivals {
		distinct[a.push] = true
	}
	if len(arrivals) != n || len(distinct) != n {
		return fmt.Errorf("%d pushes were delivered %d times, should be %d once each", len(distinct), len(arrivals), n)
	}
	return nil
}
