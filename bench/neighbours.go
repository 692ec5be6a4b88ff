package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
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
func measureNeighbours(l *lab) {
	ours, here := l.newNeighbours()
	_, there := l.newNeighbours()
	for i := range here {
		l.measureNeighbour(ours, &here[i], &there[i])
	}
	l.report.note("Neighbours: the loud tenant has 300 000 pushes, 100 000 of them for one recipient, and sends each request as soon as it has the answer to the last, on as many connections "+
		"as the row says; the calm one submits single pushes on %d. The machine is busy either way: the baseline in brackets is the same storm on a second sendquota, "+
		"with a database and a Redis index of its own, in the same servers.", calmConns)
}

// measureNeighbour measures one storm, in rounds.
func (l *lab) measureNeighbour(ours *sendquota, here, there *storm) {
	var calm, stormy, elsewhere []time.Duration
	var p99, control pairs
	for n := range l.rounds + 1 {
		quiet, loud, beside := l.calmly(ours, nil), l.calmly(ours, here), l.calmly(ours, there)
		if n == 0 { // the first one warms up
			continue
		}
		calm, stormy, elsewhere = append(calm, quiet...), append(stormy, loud...), append(elsewhere, beside...)
		of := func(latencies []time.Duration) float64 { return float64(testenv.Quantile(latencies, 0.99)) }
		p99.add(of(loud), of(quiet))
		control.add(of(beside), of(quiet))
	}
	testenv.Say("  %s: %s; %d, %d and %d samples", here.name, here.answers(), len(calm), len(stormy), len(elsewhere))
	ratio, least, most := p99.ratios()
	beside, _, _ := control.ratios()
	l.report.add(row{
		measurement: l.report.measuring, Name: "Another tenant's submit, p50 and p99, beside " + here.name,
		Ours: p50AndP99(stormy), Theirs: fmt.Sprintf("calm %s (%s)", p50AndP99(calm), p50AndP99(elsewhere)),
		Ratio: fmt.Sprintf("%.2f (%.2f..%.2f); processors alone %.2f", ratio, least, most, beside), Wanted: "≤ 3.0", OK: yes(ratio <= 3),
	})
}

// p50AndP99 writes the p50 and the p99.
func p50AndP99(latencies []time.Duration) string {
	return ms(testenv.Quantile(latencies, 0.5)) + ", " + ms(testenv.Quantile(latencies, 0.99))
}

// calmly drives the calm tenant's load, in a storm or, where that is nil, in none.
func (l *lab) calmly(ours *sendquota, s *storm) (latencies []time.Duration) {
	l.settle()
	if s != nil {
		defer s.begin(l)()
	}
	d := ours.submit(farAhead())
	d.conns, d.total, d.until = calmConns, calmTotal, l.round
	return l.drive(d).latencies
}

// storm is what a loud tenant does.
type storm struct {
	name string
	load
	statuses map[int]int // of the answers
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
func (s *storm) begin(l *lab) (end func()) {
	ctx, cancel := context.WithCancel(l.Context())
	var sent, answered atomic.Int64
	done := make(chan loadResult, 1)
	go func() {
		t, _ := s.run(ctx, &sent, &answered) // it ends by breaking its connections
		done <- t
	}()
	l.eventually("the storm begins: "+s.name, func() bool { return answered.Load() >= int64(min(s.conns, 16)) })
	return func() {
		cancel()
		for status, n := range (<-done).statuses {
			s.statuses[status] += n
		}
	}
}

// newNeighbours sets a system up with a calm tenant and a loud one, and returns what that does.
func (l *lab) newNeighbours() (*sendquota, []storm) {
	s := l.newSendquota(nowhere, neighbourSettings)
	key := s.Tenant("loud")
	return s, l.storms(s, key, s.stock())
}

// stock gives the loud tenant 200 000 pushes for 20 000 recipients and 100 000 for one,
// and returns the ids of some of these.
func (s *sendquota) stock() []string {
	const fill = `
		WITH stored AS (
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, ttl_ms, status, shard)
		SELECT p.*, p.key & 255 FROM (
		SELECT encode(overlay(uuid_send(gen_random_uuid()) PLACING substr(int8send(k.key), 8) FROM 16), 'hex')::uuid, t.id, k.key,
			r.name, 'push', 'newsletter', '{"title":"Winter sale"}'::json, at.at, at.at, at.at, at.at + interval '1 day', 86400000, 'scheduled'
		FROM tenants t, generate_series(0, $1::int - 1) AS n,
			LATERAL (SELECT CASE WHEN $2 = 1 THEN 'hot' ELSE 'many-' || n % $2::int END AS name) r,
			LATERAL (SELECT ('x' || substr(encode(sha256(decode(replace(t.id::text, '-', ''), 'hex') || r.name::bytea), 'hex'), 1, 16))::bit(64)::bigint AS key) k,
			LATERAL (SELECT date_trunc('minute', clock_timestamp()) + interval '3 days' + n / $2::int * interval '90 seconds' AS at) at
		WHERE t.name = 'loud') p RETURNING *
		)
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, bulk, push_id, tenant_id, channel, shard)
		SELECT recipient_key, send_at, next_at, expires_at, plan, 0, false, id, tenant_id, channel, shard FROM stored`
	s.exec(`SELECT make_partitions('pushes', now(), now() + interval '4 months')`)
	s.exec(fill, 200_000, 20_000)
	s.exec(fill, 100_000, 1)
	s.exec("VACUUM ANALYZE")
	rows, _ := s.db.Query(s.l.Context(), "SELECT id::text FROM pushes WHERE recipient = 'hot' ORDER BY send_at LIMIT 256")
	hot, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.l.check(err)
	return hot
}

// storms are the most expensive loads of valid requests that a tenant can make, and
// those of a caller without a key.
func (l *lab) storms(s *sendquota, key string, hot []string) []storm {
	day := func(n int) string {
		return time.Now().UTC().AddDate(0, 0, n).Truncate(time.Second).Format(time.RFC3339)
	}
	many := func(conns int, does string, requests ...*request) storm {
		return storm{name: fmt.Sprint(conns, " ", does), load: load{addr: s.addr, conns: conns, requests: requests, next: l.fresh(batchSize)}, statuses: map[int]int{}}
	}
	get := func(path string) *request { return newRequest("GET", path, key, "") }
	post := func(path, body string) *request { return newRequest("POST", path, key, body) }
	var changes, misses []*request
	for n, id := range hot {
		changes = append(changes, newRequest("PATCH", "/v1/pushes/"+id, key, fmt.Sprintf(`{"send_at":%q}`, day(4+n%90))))
		if n%8 == 0 {
			changes = append(changes, post("/v1/pushes/"+id+"/cancel", ""))
		}
		misses = append(misses, post("/v1/no/such/"+id, "{}"), get("/"+id))
	}
	one := `{"recipient":"hot","channel":"push","send_at":"` + day(40) + `","message":{}}`
	thousand := `{"pushes":[` + strings.Repeat(one+",", batchSize-1) + one + `]}`
	return []storm{
		many(64, "that list a category that no push has", get("/v1/pushes?category=zzz")),
		many(64, "that list pages of 500", get("/v1/pushes?page_size=500"), get("/v1/pushes?status=sent"), get("/v1/pushes?recipient=hot&page_size=500")),
		many(64, "that take from 16 limits of a thousand steps", takes(key)...),
		many(16, "that send batches of 1000 for one recipient with 100 000 bookings", post("/v1/pushes/batch", thousand)),
		many(16, "that send batches of 1000 for 1000 recipients", post("/v1/pushes/batch", batchBody(batchSize, day(40)))),
		many(64, "that submit for one recipient with 100 000 bookings", post("/v1/pushes", one)),
		many(64, "that look at the slots of one recipient with 100 000 bookings", get("/v1/recipients/hot/slots?from="+day(0)+"&until="+day(399))),
		many(64, "that check the quota of one recipient with 100 000 bookings",
			post("/v1/quota/check", `{"recipient":"hot","send_at":"`+day(50)+`"}`), get("/v1/recipients/hot/quota?at="+day(50))),
		many(64, "that move and cancel pushes of one recipient", changes...),
		many(64, "submits for new recipients", post("/v1/pushes", pushBody(day(41)))),
		many(64, "with wrong keys", newRequest("GET", "/v1/pushes", "sq_"+placeholder, "")),
		many(64, "that ask for unknown paths", misses...),
	}
}

// takes are requests that take from sixteen limits each.
func takes(key string) (all []*request) {
	for _, form := range []string{
		`{"key":"%d","algorithm":"sliding_window","limit":900000,"per":"1s","precision":"1ms"}`, `{"key":"%d","algorithm":"sliding_window","limit":1000,"per":"1s","precision":"1ms"}`,
		`{"key":"%d","algorithm":"sliding_log","limit":9000,"per":"10s"}`,
	} {
		var limits []string
		for n := range 16 {
			limits = append(limits, fmt.Sprintf(form, n))
		}
		for _, cost := range []int{1, 7, 500} {
			all = append(all, newRequest("POST", "/v1/limits/take", key, fmt.Sprintf(`{"cost":%d,"limits":[%s]}`, cost, strings.Join(limits, ","))))
		}
	}
	return all
}
