package main

import (
	"bufio"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// load is many connections that send requests to one server, each the next as
// soon as it has the answer to the last.
type load struct {
	addr     string
	conns    int
	requests []*request   // by turns
	next     func() int64 // the number of a request's first recipient; nil: the requests have none
	expect   int          // the status of every answer; 0: any, and a connection may break

	// It ends with the first of these that is set, or with the context.
	until time.Duration
	total int // requests
}

// loadResult counts the answers that a load had.
type loadResult struct {
	requests  int
	accepted  int // pushes
	statuses  map[int]int
	took      time.Duration
	latencies []time.Duration
	cpu       usage
}

// perSecond is the speed in requests, each counting for as many pushes.
func (t loadResult) perSecond(pushes int) float64 {
	return float64(t.requests*pushes) / t.took.Seconds()
}

// drive runs the load and measures.
func (l *lab) drive(d load) loadResult {
	var sent, answered atomic.Int64
	before := l.cpu()
	t, err := d.run(l.Context(), &sent, &answered)
	t.cpu = l.cpu().since(before)
	if err != nil {
		l.Fatalf("load on %s: %w", d.addr, err)
	}
	return t
}

// run sends the requests, and counts those sent and those answered.
func (d load) run(ctx context.Context, sent, answered *atomic.Int64) (all loadResult, err error) {
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
	)
	all.statuses = map[int]int{}
	began := time.Now()
	for _, conn := range conns {
		left.Go(func() {
			t, err := d.converse(conn, began, sent, answered)
			if err != nil && d.expect > 0 {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.requests += t.requests
			all.accepted += t.accepted
			all.latencies = append(all.latencies, t.latencies...)
			for status, n := range t.statuses {
				all.statuses[status] += n
			}
		})
	}
	left.Wait()
	all.took = time.Since(began)
	return all, context.Cause(ctx)
}

// converse is the life of one connection.
func (d load) converse(conn net.Conn, began time.Time, sent, answered *atomic.Int64) (loadResult, error) {
	t := loadResult{statuses: map[int]int{}}
	r, start := bufio.NewReaderSize(conn, 32<<10), make([]byte, 0, startLength)
	var requests []*request
	for _, one := range d.requests {
		requests = append(requests, one.copy())
	}
	for now := time.Now(); ; {
		turn := sent.Add(1)
		if d.total > 0 && turn > int64(d.total) || d.until > 0 && now.Sub(began) > d.until {
			return t, nil
		}
		_ = conn.SetDeadline(now.Add(30 * time.Second))
		one := requests[int(turn)%len(requests)]
		if len(one.spots) > 0 {
			one.number(d.next())
		}
		if _, err := conn.Write(one.text); err != nil {
			return t, err
		}
		a, err := readAnswer(r, start)
		if err == nil && d.expect > 0 && a.status != d.expect {
			err = a.unexpected(d.expect)
		}
		if err != nil {
			return t, err
		}
		answered.Add(1)
		after := time.Now()
		t.requests++
		t.accepted += a.accepted()
		t.statuses[a.status]++
		t.latencies = append(t.latencies, after.Sub(now))
		now = after
	}
}

// fresh returns numbers of recipients that were never used, stride at a time.
func (l *lab) fresh(stride int64) func() int64 {
	return func() int64 { return l.recipients.Add(stride) - stride }
}
