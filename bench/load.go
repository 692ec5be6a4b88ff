package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// load is many connections that send requests to one server, each the next as
// soon as it has the answer to the last.
type load struct {
	addr    string
	conns   int
	request *request
	next    func() int64 // the number of a request's first recipient
	expect  int          // the status of every answer

	// It ends with the first of these that is set.
	until time.Duration
	total int // requests
}

// tally is what became of a load.
type tally struct {
	requests  int
	accepted  int // pushes
	took      time.Duration
	latencies []time.Duration
	cpu       usage
}

// perSecond is the speed in requests, each counting for as many pushes.
func (t tally) perSecond(pushes int) float64 {
	return float64(t.requests*pushes) / t.took.Seconds()
}

// drive runs the load and measures.
func (l *lab) drive(ctx context.Context, d load) (tally, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conns := make([]net.Conn, d.conns)
	for i := range conns {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.addr)
		if err != nil {
			return tally{}, err
		}
		defer conn.Close()
		conns[i] = conn
	}
	// What hangs is an error, not a long measurement.
	stop := context.AfterFunc(ctx, func() {
		for _, conn := range conns {
			_ = conn.SetDeadline(time.Now())
		}
	})
	defer stop()

	var (
		left sync.WaitGroup
		sent atomic.Int64
		mu   sync.Mutex
		all  tally
	)
	before, began := l.cpu(), time.Now()
	for _, conn := range conns {
		left.Go(func() {
			t, err := d.converse(conn, began, &sent)
			if err != nil {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.requests += t.requests
			all.accepted += t.accepted
			all.latencies = append(all.latencies, t.latencies...)
		})
	}
	left.Wait()
	all.took = time.Since(began)
	all.cpu = l.cpu().since(before)
	if ctx.Err() != nil {
		return all, fmt.Errorf("load on %s: %w", d.addr, context.Cause(ctx))
	}
	return all, nil
}

// converse is the life of one connection.
func (d load) converse(conn net.Conn, began time.Time, sent *atomic.Int64) (tally, error) {
	var t tally
	r, req := bufio.NewReaderSize(conn, 32<<10), d.request.copy()
	start := make([]byte, 0, startLength)
	for now := time.Now(); ; {
		if d.total > 0 && sent.Add(1) > int64(d.total) || d.until > 0 && now.Sub(began) > d.until {
			return t, nil
		}
		_ = conn.SetDeadline(now.Add(30 * time.Second))
		req.number(d.next())
		if _, err := conn.Write(req.text); err != nil {
			return t, err
		}
		a, err := readAnswer(r, start)
		if err != nil {
			return t, err
		}
		if a.status != d.expect {
			return t, fmt.Errorf("answer %d, not %d: %s", a.status, d.expect, a.start)
		}
		after := time.Now()
		t.requests++
		t.accepted += a.accepted()
		t.latencies = append(t.latencies, after.Sub(now))
		now = after
	}
}

// fresh returns numbers of recipients that were never used, stride at a time.
func (l *lab) fresh(stride int64) func() int64 {
	return func() int64 { return l.recipients.Add(stride) - stride }
}
