package records_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/records"
	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// statsModel runs random operations of tenants and workers.
type statsModel struct {
	*bundle
	st        *store.Store
	campaigns []uuid.UUID

	mu     sync.Mutex
	random *rand.Rand
	pushes []push.Push
}

func (m *statsModel) pick(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n)
}

// any returns a random booked push.
func (m *statsModel) any() (push.Push, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pushes) == 0 {
		return push.Push{}, false
	}
	return m.pushes[m.random.IntN(len(m.pushes))], true
}

// step runs a random operation. Concurrent operations may make it fail.
func (m *statsModel) step(t *testing.T) {
	p, some := m.any()
	var err error
	switch n := m.pick(10); {
	case n < 3 || !some:
		err = m.submit()
	case n < 5:
		_, err = m.st.Cancel(context.Background(), p.Tenant, p.ID)
	case n < 7:
		err = m.Move(m.st, p, storetest.Began.Add(time.Duration(m.pick(300)-60)*time.Minute))
	default:
		err = m.attempt(p)
	}
	if err != nil && !errors.Is(err, push.ErrNotCancelable) && !errors.Is(err, push.ErrNotReschedulable) && err.Error() != "no place" {
		t.Error(err)
	}
}

// submit books a few pushes. Some are due, some have expired, and some are deferred.
func (m *statsModel) submit() error {
	o := booking.Order{Policy: storetest.ThreeRules, Now: time.Now()}
	for range 1 + m.pick(4) {
		d := storetest.Draft(m.TenantID, fmt.Sprintf("r%d", m.pick(15)), time.Duration(m.pick(240)-120)*time.Minute)
		d.Push.Category, d.Push.Campaign = []string{"", "news", "alerts"}[m.pick(3)], m.campaigns[m.pick(len(m.campaigns))]
		if d.Push.TTL = 24 * time.Hour; m.pick(4) == 0 {
			d.Push.TTL = time.Minute
		}
		if m.pick(2) == 0 {
			d.Latest = storetest.Began.Add(24 * time.Hour)
		}
		o.Drafts = append(o.Drafts, d)
	}
	decisions, err := m.st.Book(context.Background(), o)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range decisions {
		if d.Outcome == booking.Booked {
			m.pushes = append(m.pushes, d.Push)
		}
	}
	return err
}

// attempt claims for the recipient of a push, and ends the attempt in a random way.
func (m *statsModel) attempt(p push.Push) error {
	c, err := m.st.Claim(context.Background(), booking.ClaimOrder{RecipientKey: push.RecipientKey(p.Tenant, p.Recipient), Lease: time.Minute})
	if err != nil || c.Outcome != booking.Claimed {
		return err
	}
	f := []booking.Finish{storetest.Sent, storetest.Sent, storetest.TryAgain, storetest.GaveUp, storetest.LostTrack}[m.pick(5)]
	if f.Attempt = c.Attempted(); m.pick(2) == 0 {
		f.Handed = time.Duration(1+m.pick(1000)) * time.Microsecond
	}
	_, err = m.st.Finish(context.Background(), f)
	return err
}

// TestStats_Model checks that the numbers equal a count of the tables after concurrent operations, while they are added
// up and connections are cut.
func TestStats_Model(t *testing.T) {
	t.Parallel()
	for name, recounts := range map[string]bool{"counted once": false, "and booked ahead anew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStats(t, recounts)
		})
	}
}

// recount recounts the pushes booked ahead, if may is set.
func (m *statsModel) recount(may bool) (counted bool, err error) {
	if !may {
		return false, nil
	}
	return m.st.Recount(context.Background(), 0)
}

// testStats runs the model, with recounts all the time, or without any: a recount would hide a wrong count.
func testStats(t *testing.T, recounts bool) {
	m := &statsModel{bundle: setupNew(t), random: rand.New(rand.NewPCG(7, 11)), campaigns: []uuid.UUID{uuid.Nil, uuid.New(), uuid.New()}}
	m.st = m.Store
	var work, beside sync.WaitGroup
	var steps atomic.Int64
	cutAt, each := int64(10), 120
	if testing.Short() {
		each = 50
	}
	ctx, stop := context.WithCancel(context.Background())
	for range 6 {
		work.Go(func() {
			for range each {
				m.step(t)
				steps.Add(1)
			}
		})
	}
	beside.Go(func() {
		for ctx.Err() == nil {
			if _, err := m.st.FoldStatDeltas(context.Background()); err != nil {
				t.Error(err)
			}
			_, _ = m.st.Expire(context.Background(), push.Lanes(1), 3)
			if _, err := m.recount(recounts); err != nil && !errors.Is(err, push.ErrUnavailable) {
				t.Error(err)
			}
			if steps.Load() < cutAt { // a call that is cut off repeatedly, as on a busy machine, gives up
				continue
			}
			cutAt = steps.Load() + 10 + int64(m.pick(10))
			_, _ = m.Watch.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota'
				ORDER BY random() LIMIT 1`)
		}
	})
	work.Wait()
	stop()
	beside.Wait()

	m.compare(t, "some not added up")
	m.Exec(t, `UPDATE ahead SET n = n + 1 WHERE channel = 'log' AND hour > now(); INSERT INTO ahead SELECT DISTINCT tenant_id, hour, 'gone', '', campaign_id, 1 FROM ahead`)
	counted, err := m.Recount(t.Context(), 0)
	for errors.Is(err, push.ErrUnavailable) { // cut connections are still in the pool
		counted, err = m.Recount(t.Context(), 0)
	}
	if !counted || err != nil {
		t.Error(counted, err)
	}
	if counted, err := m.Recount(t.Context(), time.Hour); counted || err != nil {
		t.Error("it is counted again at once", err)
	}
	m.compare(t, "counted anew")
	for more := true; more; {
		var err error
		if more, err = m.FoldStatDeltas(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := storetest.Ask[int](t, m.DB, `SELECT count(*) FROM stat_deltas`); n != 0 {
		t.Errorf("%d stat deltas are left", n)
	}
	m.compare(t, "all added up")
	if n := storetest.Ask[int](t, m.DB, `SELECT count(DISTINCT status) FROM pushes`); n != 5 {
		t.Errorf("pushes ended in %d ways: it tests too little", n)
	}
}

// compare compares all numbers with a count of the tables.
func (m *statsModel) compare(t *testing.T, when string) {
	t.Helper()
	from, until := time.Now().UTC().Add(-48*time.Hour).Truncate(time.Hour), time.Now().UTC().Add(2*time.Hour).Truncate(time.Hour)
	for by, key := range map[stats.By]string{
		stats.ByHour: `date_trunc('hour', {at})::text`, stats.ByDay: `date_trunc('day', {at})::text`, stats.ByChannel: `channel`, stats.ByCategory: `category`,
		stats.ByCampaign: `coalesce(campaign_id::text, '')`,
	} {
		report, err := m.Stats(t.Context(), m.TenantID, stats.Query{By: by, From: from, Until: until})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, g := range report.Groups {
			name := g.Key
			if by == stats.ByHour || by == stats.ByDay {
				name = g.At.Format("2006-01-02 15:04:05+00")
			}
			got[name] = fmt.Sprint(g.Accepted, g.Deferred, g.Sent, g.Failed, g.Expired, g.Canceled)
		}
		want := m.tableCounts(t, key)
		if fmt.Sprint(got) != fmt.Sprint(want) || len(want) == 0 {
			t.Errorf("%s, by %s: %v, want %v", when, by, got, want)
		}
		if by == stats.ByDay {
			m.late(t, report.Groups)
		}
	}
	for _, campaign := range m.campaigns[1:] {
		got, err := records.CampaignStat(t.Context(), m.DB, m.TenantID, campaign)
		want := storetest.Ask[string](t, m.DB, `SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE status = 'sent'), count(*) FILTER (WHERE status = 'failed'),
			count(*) FILTER (WHERE status = 'expired'), count(*) FILTER (WHERE status = 'canceled')) FROM pushes WHERE campaign_id = $1`, campaign)
		if text := fmt.Sprint(got.Accepted, got.Sent, got.Failed, got.Expired, got.Canceled); err != nil || text != want {
			t.Errorf("%s, a campaign: %s, want %s; %v", when, text, want, err)
		}
	}
	ahead, err := m.AheadCounts(t.Context(), m.TenantID, stats.AheadQuery{By: stats.ByHour, From: from, Until: until.Add(48 * time.Hour)})
	got := ""
	for _, a := range ahead {
		got += fmt.Sprint(a.At.Unix(), ":", a.Pushes, " ")
	}
	want := storetest.Ask[string](t, m.DB, `SELECT coalesce(string_agg(extract(epoch FROM at)::bigint || ':' || n || ' ', '' ORDER BY at), '') FROM (
		SELECT date_trunc('hour', send_at) AS at, count(*) AS n FROM pushes WHERE status = 'scheduled' GROUP BY 1) p`)
	if err != nil || got != want || want == "" {
		t.Errorf("%s, ahead: %s, want %s; %v", when, got, want, err)
	}
	for by, key := range map[stats.By]string{stats.ByChannel: `channel`, stats.ByCategory: `category`, stats.ByCampaign: `coalesce(campaign_id::text, '')`} {
		ahead, err := m.AheadCounts(t.Context(), m.TenantID, stats.AheadQuery{By: stats.ByDay, Split: by, From: from, Until: until.Add(48 * time.Hour)})
		got := ""
		for _, a := range ahead {
			for _, part := range a.Parts {
				got += fmt.Sprint(a.At.Unix(), " ", a.Pushes, " ", part.Key, ":", part.Pushes, " ")
			}
		}
		want := storetest.Ask[string](t, m.DB, `SELECT coalesce(string_agg(concat_ws(' ', extract(epoch FROM at)::bigint, total, key || ':' || n) || ' ', '' ORDER BY at, n DESC, key), '') FROM (
			SELECT date_trunc('day', send_at, 'UTC') AS at, `+key+` AS key, count(*) AS n, sum(count(*)) OVER (PARTITION BY date_trunc('day', send_at, 'UTC')) AS total
			FROM pushes WHERE status = 'scheduled' GROUP BY 1, 2) p`)
		if err != nil || got != want || want == "" {
			t.Errorf("%s, ahead in parts by %s: %s, want %s; %v", when, by, got, want, err)
		}
	}
}

// tableCounts counts the pushes in the tables, and how many of them were deferred when they were booked.
func (m *statsModel) tableCounts(t *testing.T, key string) map[string]string {
	t.Helper()
	at := func(column string) string { return strings.ReplaceAll(key, "{at}", column) }
	var (
		ids      [][16]byte
		deferred []bool
	)
	for _, p := range m.pushes {
		ids, deferred = append(ids, p.ID), append(deferred, p.SendAt.After(p.RequestedSendAt))
	}
	rows, _ := m.DB.Query(t.Context(), `
		SELECT key, concat_ws(' ', sum(accepted), sum(deferred), sum(sent), sum(failed), sum(expired), sum(canceled)) FROM (
			SELECT `+at("p.created_at")+` AS key, 1 AS accepted, (b.deferred)::int AS deferred, 0 AS sent, 0 AS failed, 0 AS expired, 0 AS canceled
			FROM pushes p JOIN unnest($1::uuid[], $2::bool[]) b (id, deferred) ON b.id = p.id
			UNION ALL
			SELECT `+at("updated_at")+`, 0, 0, (status = 'sent')::int, (status = 'failed')::int, (status = 'expired')::int, (status = 'canceled')::int
			FROM pushes p WHERE status <> 'scheduled'
		) all_of_them GROUP BY key`, ids, deferred)
	counts := map[string]string{}
	for rows.Next() {
		var key, text string
		if err := rows.Scan(&key, &text); err != nil {
			t.Fatal(err)
		}
		counts[key] = text
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return counts
}

// late compares the delays of sent pushes with the times of the attempts.
func (m *statsModel) late(t *testing.T, groups []stats.Group) {
	t.Helper()
	all := stats.Lateness{}
	for _, g := range groups {
		all.Add(g.Late)
	}
	rows, _ := m.DB.Query(t.Context(), `
		SELECT 1000 * date_part('epoch', coalesce(handed_at, ended_at) - p.send_at) FROM pushes p JOIN LATERAL (
			SELECT * FROM sends s WHERE s.push_id = p.id ORDER BY attempt DESC LIMIT 1) s ON true WHERE p.status = 'sent'`)
	var times []float64
	for rows.Next() {
		var ms float64
		if err := rows.Scan(&ms); err != nil {
			t.Fatal(err)
		}
		times = append(times, ms)
	}
	slices.Sort(times)
	for _, q := range []float64{0.5, 0.99} {
		want := times[int(math.Ceil(q*float64(len(times))))-1]
		if got := all.Quantile(q); math.Abs(got-want) > 0.02*want {
			t.Errorf("the %g of %d is %g late, want %g", q, len(times), got, want)
		}
	}
}

// TestStats_LateBucket checks that a push that is on time, or early, is in the first bucket, and that the last buckets
// are far away.
func TestStats_LateBucket(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for late, want := range map[time.Duration]int16{-time.Hour: 0, 0: 0, time.Millisecond: 0, time.Millisecond + time.Microsecond: 1, 400 * 24 * time.Hour: 619} {
		if got := storetest.Ask[int16](t, b.DB, `SELECT `+pushes.LateBucket(`$1::interval`), late); got != want {
			t.Errorf("%s is in bucket %d, want %d", late, got, want)
		}
	}
}
