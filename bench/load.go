package main

import (
	"bufio"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// load is many connections to one server. Each sends its next request when it has the answer to the previous one.
type load struct {
	addr     string
	conns    int
	requests []*request   // by turns
	next     func() int64 // the number of a request's first recipient; nil: the requests have none
	expect   int          // the status of every answer

	// It ends with the first of these that is set, or with the context.
	until time.Duration
	total int // requests
}

// loadResult counts the answers that a load had.
type loadResult struct {
	requests  int
	accepted  int // pushes
	took      time.Duration
	latencies []time.Duration
	cpu       usage
}

// perSecond returns the speed in pushes.
func (t loadResult) perSecond(pushes int) float64 {
	return float64(t.requests*pushes) / t.took.Seconds()
}

// drive runs the load and measures.
func (l *lab) drive(d load) loadResult {
	before := l.cpu()
	t, err := d.run(l.Context())
	t.cpu = l.cpu().since(before)
	if err != nil {
		l.Fatalf("load on %s: %w", d.addr, err)
	}
	return t
}

// run sends the requests.
func (d load) run(ctx context.Context) (all loadResult, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conns := make([]net.Conn, d.conns)
	for i := range conns {
		if conns[i], err = (&net.Dialer{}).DialContext(ctx, "tcp", d.addr); err != nil {
			return all, err
		}
		defer conns[i].Close()
	}
	// A connection that hangs is an error, not a long measurement.
	defer context.AfterFunc(ctx, func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	})()
	var (
		left sync.WaitGroup
		mu   sync.Mutex
		sent atomic.Int64
	)
	began := time.Now()
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
	return all, context.Cause(ctx)
}

// converse sends the requests of one connection.
func (d load) converse(conn net.Conn, began time.Time, sent *atomic.Int64) (t loadResult, err error) {
	r, start := bufio.NewReaderSize(conn, 32<<10), make([]byte, 0, startLength)
	var requests []*request
	for _, one := range d.requests {
		requests = append(requests, one.copy())
	}
	for now := time.Now(); ; {
		sequence := sent.Add(1)
		if d.total > 0 && sequence > int64(d.total) || d.until > 0 && now.Sub(began) > d.until {
			return t, nil
		}
		_ = conn.SetDeadline(now.Add(30 * time.Second))
		one := requests[int(sequence)%len(requests)]
		if len(one.spots) > 0 {
			one.number(d.next())
		}
		if _, err := conn.Write(one.text); err != nil {
			return t, err
		}
		a, err := readAnswer(r, start)
		if err == nil && a.status != d.expect {
			err = a.unexpected(d.expect)
		}
		if err != nil {
			return t, err
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
