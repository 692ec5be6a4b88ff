package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// armingWorkers share the lanes.
const armingWorkers = 4

// measureArming has very many pushes fall due within the horizon, and looks how
// long workers that start take until the lanes are armed for all of them. They
// are stopped before the first push is due.
func measureArming(l *lab) {
	pushes := 50 * l.backlog
	s := l.newSendquota(nowhere)
	rdb := testenv.RedisClient(l, s.redis)
	first := time.Now().Add(30*time.Second + time.Duration(pushes)*100*time.Microsecond).Truncate(time.Second)
	s.exec(`
		WITH stored AS (
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, shard)
		SELECT gen_random_uuid(), gen_random_uuid(), ('x' || substr(md5(n::text), 1, 16))::bit(64)::bigint, 'r' || n, 'push', '{}', at, at, at, at + interval '1 hour', 'scheduled', ('x' || substr(md5(n::text), 15, 2))::bit(8)::int
		FROM (SELECT n, $2::timestamptz + n % 40 * interval '1 second' AS at FROM generate_series(1, $1) AS n) p RETURNING *
		)
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, bulk, push_id, tenant_id, channel, shard)
		SELECT recipient_key, send_at, next_at, expires_at, plan, 0, false, id, tenant_id, channel, shard FROM stored`, pushes, first)
	s.exec("VACUUM ANALYZE pushes, live")
	testenv.Say("  %s pushes are stored, %s ahead", count(float64(pushes)), time.Until(first).Round(time.Second))
	testenv.Sleep(l, time.Until(first.Add(-45*time.Second)))
	var wakeUps int
	s.query(`
		SELECT sum((n + 255) / 256) FROM (
			SELECT count(*) AS n FROM pushes GROUP BY (recipient_key & 255) / 64, next_at) moments`, nil, &wakeUps)
	before, began := l.cpu(), time.Now()
	var workers []*process.Process
	for range armingWorkers {
		workers = append(workers, l.watch(s.Start("worker", "SENDQUOTA_METRICS_ADDR=")))
	}
	l.eventually("all lanes are armed", func() bool { return l.armed(rdb) >= wakeUps })
	took := time.Since(began)
	l.report.used("sendquota", pushes, l.cpu().since(before))
	for _, w := range workers {
		l.stop(w)
	}
	l.report.add(row{
		measurement: l.report.measuring, Name: fmt.Sprintf("arming %s, all due within the horizon, by %d workers", strings.ReplaceAll(count(float64(pushes)), " ", ","), armingWorkers),
		Ours: fmt.Sprintf("%s, %s wake-ups", took.Round(10*time.Millisecond), count(float64(wakeUps))), Theirs: "—", Wanted: "≤ 15 s", OK: yes(took <= 15*time.Second),
	})
}
