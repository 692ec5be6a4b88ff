package main

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

const (
	// upkeepSettings are those of a channel through which next to nothing goes: what is due waits.
	upkeepSettings = "  slow: {type: log, throughput: {rate: 1, per: 24h}}\ndelivery: {audit_interval: 0s}\n"
	// defaultLanes is the default of delivery.lanes.
	defaultLanes = 4
	// auditInterval is the default of delivery.audit_interval.
	auditInterval = 15 * time.Minute
	// expiryInterval is how often a worker looks when the first of all that is due expires.
	expiryInterval = 10 * time.Minute
)

// defaultPolicy has the default rules.
var defaultPolicy = quota.Policy{
	{Name: "per-minute", Limit: 1, Window: time.Minute}, {Name: "per-hour", Limit: 5, Window: time.Hour}, {Name: "per-day", Limit: 10, Window: 24 * time.Hour},
}

// measureUpkeep has very many pushes be due that must wait, and attempts be under way whose leases last, and looks what
// the worker that owns all lanes costs then: besides its loops it has nothing to do. What the worker and Redis need while
// nothing is due, most of it for asynq's looks at its queues, is no upkeep; all that Postgres does is.
func measureUpkeep(l *lab) {
	due, inFlight := 50*l.backlog, l.backlog*5/2
	s := l.newSendquota(nowhere, upkeepSettings)
	idle := s.upkeep()
	s.exec(`
		WITH stored AS (
			INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, shard)
			SELECT p.*, p.key & 255 FROM (
			SELECT gen_random_uuid(), t.id, ('x' || substr(encode(sha256(uuid_send(t.id) || convert_to('r' || n, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint AS key, 'r' || n,
				'slow', '{"title":"Winter sale"}'::json, at, at, at, at + interval '1 day', 'scheduled'
			FROM tenants t, generate_series(1, $1::int + $2::int) AS n,
				LATERAL (SELECT date_trunc('second', clock_timestamp()) - n % 60 * interval '1 second' AS at) a) p
			RETURNING *
		)
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, started_at, plan, attempts, phase, bulk, push_id, tenant_id, token, channel, shard)
		SELECT recipient_key, send_at, CASE WHEN flies THEN send_at + interval '1 hour' ELSE send_at END, expires_at, CASE WHEN flies THEN send_at END,
			plan, flies::int, CASE WHEN flies THEN 2 ELSE 1 END, NOT flies, id, tenant_id, CASE WHEN flies THEN gen_random_uuid() END, channel, shard
		FROM stored, LATERAL (SELECT substr(recipient, 2)::int > $1::int AS flies) f`, due, inFlight)
	s.exec("VACUUM ANALYZE")
	audit, took := s.audit()
	expiry := s.expiry()
	l.profiled("upkeep", s, func() {
		busy := s.upkeep()
		all := max(0, busy.worker-idle.worker) + max(0, busy.redis-idle.redis) + busy.postgres + expiry.sum() + audit.sum()
		l.report.add(row{
			measurement: l.report.measuring, Name: fmt.Sprintf("upkeep of a worker alone, %s due that wait and %s in flight", count(float64(due)), count(float64(inFlight))),
			Ours: fmt.Sprintf("loops %s, looks at all that is due %s, audit %s", busy, expiry, audit), Theirs: fmt.Sprintf("nothing due: %s", idle),
			Ratio: fmt.Sprintf("%.1f %% of a core", all), Wanted: "≤ 2 %", OK: yes(all <= 2),
		})
	})
	l.report.note("Upkeep: one worker owns all lanes. Its channel lets nothing go, so that the loops, and its looks at what waits, are all it does. "+
		"What the worker and Redis need while nothing is due is not counted, all that Postgres does is. The audit took %s; it counts as once in %s, the default of delivery.audit_interval. "+
		"A worker looks when the first of all that is due expires when it gets lanes, and after that every %s, which counts as often.", took.Round(10*time.Millisecond), auditInterval, expiryInterval)
}

// percent is what parts of a core do in a span of time, by kind of process.
type percent struct{ worker, postgres, redis float64 }

func percentOf(u usage, d time.Duration) percent {
	of := func(kind string) float64 { return 100 * u[kind] / d.Seconds() }
	return percent{of("worker"), of("postgres"), of("redis")}
}

func (p percent) sum() float64 { return p.worker + p.postgres + p.redis }

func (p percent) String() string {
	return fmt.Sprintf("%.2f %% (worker %.2f, postgres %.2f, redis %.2f)", p.sum(), p.worker, p.postgres, p.redis)
}

// upkeep is what a worker costs that has nothing to send.
func (s *sendquota) upkeep() percent {
	worker := s.startProgram("worker")
	defer s.l.stop(worker)
	var owned int
	s.l.eventually("the worker owns all lanes", func() bool {
		s.query("SELECT count(*) FROM lanes WHERE owned_until > clock_timestamp()", nil, &owned)
		return owned == defaultLanes
	})
	s.l.settle()
	testenv.Sleep(s.l, warmUp)
	quiet := 0
	s.l.eventually("the worker's first looks are over", func() bool {
		var active int
		s.query("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota' AND state = 'active'", nil, &active)
		if quiet++; active > 0 {
			quiet = 0
		}
		return quiet == 20
	})
	before, began := s.l.cpu(), time.Now()
	testenv.Sleep(s.l, 4*s.l.round)
	return percentOf(s.l.cpu().since(before), time.Since(began))
}

// expiry is what it costs to look when the first of all that is due expires, as often as a worker does.
func (s *sendquota) expiry() percent {
	st, err := store.Open(s.l.Context(), s.Database, store.Config{})
	s.l.check(err)
	defer st.Close()
	before := s.l.cpu()
	_, _, err = st.NextExpiry(s.l.Context(), push.Lanes(1), time.Time{})
	s.l.check(err)
	return percentOf(s.l.cpu().since(before), expiryInterval)
}

// audit is what the audit of a worker costs if it runs as often as by default, and how long one takes.
func (s *sendquota) audit() (percent, time.Duration) {
	st, err := store.Open(s.l.Context(), s.Database, store.Config{})
	s.l.check(err)
	defer st.Close()
	before, began := s.l.cpu(), time.Now()
	plan := booking.AuditPlan{Policy: defaultPolicy, Back: defaultPolicy.Reach() + 2*auditInterval, Ahead: 24 * time.Hour}
	_, err = st.RunAudit(s.l.Context(), uuid.New(), plan, func(booking.AuditChunk) error { return nil })
	s.l.check(err)
	found, err := st.LastAudit(s.l.Context())
	s.l.check(err)
	for check, f := range found.Found {
		s.l.report.fault("upkeep: the audit found %s, %v", check, f.Pushes)
	}
	u := s.l.cpu().since(before)
	u["worker"] = u["load"] // this process made it
	return percentOf(u, auditInterval), time.Since(began)
}
