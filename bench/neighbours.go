package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// neighbourSettings let one recipient have very many bookings.
const neighbourSettings = "policy: {rules: [{name: per-day, limit: 1000, window: 24h}]}\n"

// calmConns and calmTotal are the load of the tenant that is measured: little enough to
// keep no processor busy.
const (
	calmConns = 2
	calmTotal = 300
)

// measureNeighbours measures the submits of one tenant while another one does its worst,
// against those in a calm moment. The same storm on a second system, which shares
// nothing but the machine and the servers' processes, tells how much of that is only
// the processors' being busy.
func measureNeighbours(ctx context.Context, l *lab) error {
	ours, err := l.newNeighbours(ctx)
	if err != nil {
		return err
	}
	l.index = otherIndex
	defer func() { l.index = oursIndex }()
	other, err := l.newNeighbours(ctx)
	if err != nil {
		return err
	}
	for i := range ours.storms {
		if err := l.measureNeighbour(ctx, ours, &ours.storms[i], &other.storms[i]); err != nil {
			return fmt.Errorf("%s: %w", ours.storms[i].name, err)
		}
	}
	l.report.note("Neighbours: the loud tenant has 300 000 pushes, 100 000 of them for one recipient, and sends each request as soon as it has the answer to the last, on as many connections "+
		"as the row says; the calm one submits single pushes on %d. The machine is busy either way: the baseline in brackets is the same storm on a second sendquota, "+
		"with a database and a Redis index of its own, in the same servers.", calmConns)
	return nil
}

// neighbours is a system with a calm tenant and a loud one.
type neighbours struct {
	*sendquota
	storms []storm
}

// measureNeighbour measures one storm, in rounds.
func (l *lab) measureNeighbour(ctx context.Context, ours *neighbours, here, there *storm) error {
	var calm, stormy, elsewhere []time.Duration
	var p99, control pairs
	for n := range l.rounds + 1 {
		rounds := make([]tally, 3)
		for i, s := range []*storm{nil, here, there} {
			var err error
			if rounds[i], err = l.calmly(ctx, ours, s); err != nil {
				return err
			}
		}
		if n == 0 { // the first one warms up
			continue
		}
		calm, stormy, elsewhere = append(calm, rounds[0].latencies...), append(stormy, rounds[1].latencies...), append(elsewhere, rounds[2].latencies...)
		of := func(t tally) float64 { return float64(quantile(t.latencies, 0.99)) }
		p99, control = append(p99, pair{of(rounds[1]), of(rounds[0])}), append(control, pair{of(rounds[2]), of(rounds[0])})
	}
	say("  %s: %s; p50 %s calm, %s in the storm, %s beside it", here.name, here.answers(), ms(quantile(calm, 0.5)), ms(quantile(stormy, 0.5)), ms(quantile(elsewhere, 0.5)))
	say("    p99 %s calm, %s in the storm, %s beside it (%d, %d and %d samples)", ms(quantile(calm, 0.99)), ms(quantile(stormy, 0.99)), ms(quantile(elsewhere, 0.99)), len(calm), len(stormy), len(elsewhere))
	ratio, least, most := p99.ratios()
	beside, _, _ := control.ratios()
	l.report.add(row{
		measurement: l.report.measuring, name: "Another tenant's submit, p50 and p99, beside " + here.name,
		ours:   fmt.Sprintf("%s, %s", ms(quantile(stormy, 0.5)), ms(quantile(stormy, 0.99))),
		theirs: fmt.Sprintf("calm %s, %s (%s, %s)", ms(quantile(calm, 0.5)), ms(quantile(calm, 0.99)), ms(quantile(elsewhere, 0.5)), ms(quantile(elsewhere, 0.99))),
		ratio:  fmt.Sprintf("%.2f (%.2f..%.2f); processors alone %.2f", ratio, least, most, beside), wanted: "≤ 3.0", ok: yes(ratio <= 3),
	})
	return nil
}

// calmly drives the calm tenant's load, in a storm or, where that is nil, in none.
func (l *lab) calmly(ctx context.Context, ours *neighbours, s *storm) (tally, error) {
	if err := l.settle(ctx); err != nil {
		return tally{}, err
	}
	if s != nil {
		end, err := s.begin(ctx)
		if err != nil {
			return tally{}, err
		}
		defer end()
	}
	d := ours.submit(l, farAhead())
	d.conns, d.total, d.until = calmConns, calmTotal, l.round
	return l.drive(ctx, d)
}

// storm is what a loud tenant does.
type storm struct {
	name     string
	addr     string
	conns    int
	requests []*request // by turns
	next     func() int64

	mu       sync.Mutex
	statuses map[int]int
}

// answers says what the loud tenant was answered.
func (s *storm) answers() string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(s.statuses)) {
		parts = append(parts, fmt.Sprintf("%d × %d", s.statuses[status], status))
	}
	return strings.Join(parts, ", ")
}

// begin starts the storm, and returns when as many requests as there are connections
// were answered, with what ends it.
func (s *storm) begin(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var answered, turn atomic.Int64
	end = func() { cancel(); all.Wait() }
	for range s.conns {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
		if err != nil {
			end()
			return nil, err
		}
		all.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			defer conn.Close()
			s.rage(conn, &turn, &answered)
		})
	}
	return end, eventually(ctx, func() (bool, error) { return answered.Load() >= int64(min(s.conns, 16)), nil })
}

// rage is the life of one connection.
func (s *storm) rage(conn net.Conn, turn, answered *atomic.Int64) {
	r, start := bufio.NewReaderSize(conn, 32<<10), make([]byte, 0, startLength)
	var requests []*request
	for _, one := range s.requests {
		requests = append(requests, one.copy())
	}
	for {
		one := requests[int(turn.Add(1))%len(requests)]
		if len(one.spots) > 0 {
			one.number(s.next())
		}
		if _, err := conn.Write(one.text); err != nil {
			return
		}
		a, err := readAnswer(r, start)
		if err != nil {
			return
		}
		answered.Add(1)
		s.mu.Lock()
		s.statuses[a.status]++
		s.mu.Unlock()
	}
}

// newNeighbours sets a system up with a loud tenant.
func (l *lab) newNeighbours(ctx context.Context) (*neighbours, error) {
	s, err := l.newSendquota(ctx, "http://127.0.0.1:9/", neighbourSettings)
	if err != nil {
		return nil, err
	}
	if _, err := s.operate(ctx, "tenants", "create", "loud"); err != nil {
		return nil, err
	}
	key, err := s.operate(ctx, "keys", "create", "--tenant", "loud")
	if err != nil {
		return nil, err
	}
	hot, err := s.stock(ctx)
	if err != nil {
		return nil, err
	}
	return &neighbours{s, l.storms(s, key, hot)}, nil
}

// stock gives the loud tenant 200 000 pushes for 20 000 recipients and 100 000 for one,
// and returns the ids of some of these.
func (s *sendquota) stock(ctx context.Context) (hot []string, err error) {
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	const fill = `
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, ttl_ms)
		SELECT gen_random_uuid(), t.id, ('x' || substr(encode(sha256(decode(replace(t.id::text, '-', ''), 'hex') || r.name::bytea), 'hex'), 1, 16))::bit(64)::bigint,
			r.name, 'push', 'newsletter', '{"title":"Winter sale"}', at.at, at.at, at.at, at.at + interval '1 day', 86400000
		FROM tenants t, generate_series(0, $1::int - 1) AS n,
			LATERAL (SELECT CASE WHEN $2 = 1 THEN 'hot' ELSE 'many-' || n % $2::int END AS name) r,
			LATERAL (SELECT date_trunc('minute', clock_timestamp()) + interval '3 days' + n / $2::int * interval '90 seconds' AS at) at
		WHERE t.name = 'loud'`
	for _, part := range [][]any{{200_000, 20_000}, {100_000, 1}} {
		if _, err := conn.Exec(ctx, fill, part...); err != nil {
			return nil, err
		}
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return nil, err
	}
	rows, _ := conn.Query(ctx, "SELECT id::text FROM pushes WHERE recipient = 'hot' ORDER BY send_at LIMIT 256")
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// storms are the worst that a tenant can do with valid requests, kind by kind, and what
// somebody without a key can.
func (l *lab) storms(s *sendquota, key string, hot []string) []storm {
	day := func(n int) string {
		return time.Now().UTC().AddDate(0, 0, n).Truncate(time.Second).Format(time.RFC3339)
	}
	get := func(path string) *request { return newMethod("GET", path, key, "") }
	var takes, changes, misses []*request
	for _, form := range []string{
		`{"key":"%d","algorithm":"sliding_window","limit":900000,"per":"1s","precision":"1ms"}`, `{"key":"%d","algorithm":"sliding_window","limit":1000,"per":"1s","precision":"1ms"}`,
		`{"key":"%d","algorithm":"sliding_log","limit":9000,"per":"10s"}`,
	} {
		var limits []string
		for n := range 16 {
			limits = append(limits, fmt.Sprintf(form, n))
		}
		for _, cost := range []int{1, 7, 500} {
			takes = append(takes, newRequest("/v1/limits/take", key, fmt.Sprintf(`{"cost":%d,"limits":[%s]}`, cost, strings.Join(limits, ","))))
		}
	}
	for n, id := range hot {
		changes = append(changes, newMethod("PATCH", "/v1/pushes/"+id, key, fmt.Sprintf(`{"send_at":%q}`, day(4+n%90))))
		if n%8 == 0 {
			changes = append(changes, newRequest("/v1/pushes/"+id+"/cancel", key, ""))
		}
		misses = append(misses, newRequest("/v1/no/such/"+id, key, "{}"), get("/"+id))
	}
	one := `{"recipient":"%s","channel":"push","send_at":"` + day(40) + `","message":{}}`
	thousand := func(recipient string) string {
		member := fmt.Sprintf(one, recipient)
		return `{"pushes":[` + strings.Repeat(member+",", 999) + member + `]}`
	}
	all := []storm{
		{name: "64 that list a category that no push has", conns: 64, requests: []*request{get("/v1/pushes?category=zzz")}},
		{name: "64 that list pages of 500", conns: 64, requests: []*request{get("/v1/pushes?page_size=500"), get("/v1/pushes?status=sent"), get("/v1/pushes?recipient=hot&page_size=500")}},
		{name: "64 that take from 16 limits of a thousand steps", conns: 64, requests: takes},
		{name: "16 that send batches of 1000 for one recipient with 100 000 bookings", conns: 16, requests: []*request{newRequest("/v1/pushes/batch", key, thousand("hot"))}},
		{name: "16 that send batches of 1000 for 1000 recipients", conns: 16, requests: []*request{newRequest("/v1/pushes/batch", key, batchBody(batchSize, day(40)))}, next: l.fresh(batchSize)},
		{name: "64 that submit for one recipient with 100 000 bookings", conns: 64, requests: []*request{newRequest("/v1/pushes", key, fmt.Sprintf(one, "hot"))}},
		{name: "64 that look at the slots of one recipient with 100 000 bookings", conns: 64, requests: []*request{get("/v1/recipients/hot/slots?from=" + day(0) + "&until=" + day(399))}},
		{name: "64 that check the quota of one recipient with 100 000 bookings", conns: 64, requests: []*request{
			newRequest("/v1/quota/check", key, `{"recipient":"hot","send_at":"`+day(50)+`"}`), get("/v1/recipients/hot/quota?at=" + day(50))}},
		{name: "64 that move and cancel pushes of one recipient", conns: 64, requests: changes},
		{name: "64 submits for new recipients", conns: 64, requests: []*request{newRequest("/v1/pushes", key, pushBody(day(41)))}, next: l.fresh(1)},
		{name: "64 with wrong keys", conns: 64, requests: []*request{newMethod("GET", "/v1/pushes", "sq_"+placeholder, "")}, next: l.fresh(1)},
		{name: "64 that ask for unknown paths", conns: 64, requests: misses},
	}
	for i := range all {
		all[i].addr, all[i].statuses = s.addr, map[int]int{}
	}
	return all
}
