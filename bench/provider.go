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

	"github.com/sendquota/sendquota/internal/process"
)

// provider takes pushes over HTTP and remembers when each arrived. It speaks
// just as much HTTP/1.1 as its clients need, because it stands for a machine
// far away: what it costs here is missing to those who are measured.
type provider struct {
	mu       sync.Mutex
	arrivals []arrival
}

type arrival struct {
	push string
	at   time.Time
}

// runProvider is the provider's process.
func runProvider() error {
	listener, err := net.Listen("tcp", os.Getenv("ADDR"))
	if err != nil {
		return err
	}
	p := &provider{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	untilStopped()
	return listener.Close()
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
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return "", "", "", err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(value))
		case bytes.EqualFold(name, []byte("Idempotency-Key")):
			id = string(value)
		}
		if err != nil {
			return "", "", "", err
		}
	}
	_, err = r.Discard(length)
	return words[0], words[1], id, err
}

// answer takes a push, or tells about those it took.
func (p *provider) answer(method, path, id string, at time.Time) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case method == http.MethodPost:
		p.arrivals = append(p.arrivals, arrival{push: id, at: at})
		return fmt.Appendf(nil, `{"id":"p-%d"}`, len(p.arrivals))
	case path == "/count":
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
type providerClient struct{ addr string }

func (l *lab) startProvider(ctx context.Context) (providerClient, error) {
	addr, err := process.FreeAddr()
	if err != nil {
		return providerClient{}, err
	}
	p, err := l.start("provider", []string{"ADDR=" + addr}, l.self, "role-provider")
	if err != nil {
		return providerClient{}, err
	}
	return providerClient{addr}, p.AwaitListen(ctx, addr)
}

func (c providerClient) url() string { return "http://" + c.addr + "/" }

func (c providerClient) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+path, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// count tells how many pushes have arrived since they were last taken.
func (c providerClient) count(ctx context.Context) (int, error) {
	text, err := c.get(ctx, "/count")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// take returns what has arrived, and has the provider forget it.
func (c providerClient) take(ctx context.Context) ([]arrival, error) {
	text, err := c.get(ctx, "/arrivals")
	if err != nil {
		return nil, err
	}
	var all []arrival
	for line := range strings.Lines(text) {
		id, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		ns, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, arrival{push: id, at: time.Unix(0, ns)})
	}
	return all, nil
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
