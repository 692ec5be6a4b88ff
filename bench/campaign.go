package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// campaignBookings is the number of bookings of each recipient before the campaign. Under these rules they block about
// two thirds of its pushes.
const (
	campaignBookings = 3
	// calmConns keep no processor busy.
	calmConns        = 2
	campaignSettings = "policy: {rules: [{name: per-hour, limit: 2, window: 1h}, {name: per-day, limit: 4, window: 24h}]}\n"
)

// measureCampaign simulates, books and cancels a campaign for five times as many recipients as a backlog has, each with bookings
// before it. Another tenant submits single pushes, in a calm moment and while the campaign is booked.
func measureCampaign(l *lab) {
	recipients := 5 * l.backlog
	s := l.newSendquota(nowhere, campaignSettings)
	api := l.running[len(l.running)-1]
	worker := s.startWorker()
	c, err := client.New("http://"+s.addr, s.Tenant("campaigns"), client.Config{})
	l.check(err)
	at := time.Now().UTC().Add(48 * time.Hour).Truncate(time.Hour)
	s.bookBefore(recipients, at)
	draft, err := c.Campaigns.Create(l.Context(), "", client.NewCampaign{
		Channel: "push", SendAt: at, Spread: "30m", OnConflict: "defer", Message: client.Message{"title": "Hi {{ first_name | default: 'there' }}", "body": "Everything must go."},
	})
	l.check(err)
	_, err = c.Campaigns.PutAudience(l.Context(), draft.ID, strings.NewReader(audienceOf(recipients)), client.CSV)
	l.check(err)
	began := time.Now()
	said, err := c.Campaigns.Simulate(l.Context(), draft.ID)
	l.check(err)
	simulated := time.Since(began)

	load := s.submit(farAhead())
	load.conns, load.until = calmConns, l.round
	l.settle()
	l.drive(load) // warms up
	calm := l.drive(load).latencies
	_, err = c.Campaigns.Start(l.Context(), draft.ID)
	l.check(err)
	booked, beside := l.until(c, draft.ID, client.CampaignStatusRunning, load)
	is, err := c.Campaigns.Get(l.Context(), draft.ID)
	l.check(err)
	if is.Progress.Scheduled != int64(recipients) || is.Progress.Deferred != said.Deferred {
		l.report.fault("campaign: %d of %d recipients are booked, %d of them at another time; the simulation said %d", is.Progress.Scheduled, recipients, is.Progress.Deferred, said.Deferred)
	}
	_, err = c.Campaigns.Cancel(l.Context(), draft.ID)
	l.check(err)
	load.until = 0
	load.total = 1
	canceled, _ := l.until(c, draft.ID, client.CampaignStatusCanceled, load)

	add := func(name, ours, theirs, ratio, wanted string, ok bool) {
		l.report.add(row{measurement: l.report.measuring, Name: name, Ours: ours, Theirs: theirs, Ratio: ratio, Wanted: wanted, OK: yes(ok)})
	}
	of := fmt.Sprintf("campaign of %s, with %s bookings before it", count(float64(recipients)), count(float64(campaignBookings*recipients)))
	timed := func(what string, took, most time.Duration) {
		add(what+" a "+of, took.Round(10*time.Millisecond).String(), "—", "—", "≤ "+most.String(), took <= most)
	}
	timed("Simulate", simulated, 10*time.Second)
	timed("Book", booked, 20*time.Second)
	timed("Cancel", canceled, 20*time.Second)
	ratio := float64(testenv.Quantile(beside, 0.99)) / float64(testenv.Quantile(calm, 0.99))
	add("Another tenant's submit, p50 and p99, while the campaign is booked", p50AndP99(beside), "calm "+p50AndP99(calm), fmt.Sprintf("%.2f", ratio), "≤ 2.0", ratio <= 2)
	for name, p := range map[string]*process.Process{"API": api, "worker": worker} {
		most := peakMemory(l, p)
		add("Most memory of the "+name+" until then", fmt.Sprintf("%d MB", most>>20), "—", "—", "≤ 300 MB", most <= 300<<20)
	}
}

// until repeats a load until a campaign has a status, and returns how long that took.
func (l *lab) until(c *client.Client, id string, status client.CampaignStatus, d load) (took time.Duration, latencies []time.Duration) {
	began := time.Now()
	d.until = min(d.until, time.Second)
	for {
		latencies = append(latencies, l.drive(d).latencies...)
		is, err := c.Campaigns.Get(l.Context(), id)
		l.check(err)
		if is.Status == status {
			return time.Since(began), latencies
		}
	}
}

// audienceOf returns a list of recipients in CSV. Every other one has a first name.
func audienceOf(recipients int) string {
	var text strings.Builder
	text.WriteString("recipient,first_name\n")
	for i := range recipients {
		name := ""
		if i%2 == 0 {
			name = "Aiko"
		}
		fmt.Fprintf(&text, "user-%d,%s\n", i, name)
	}
	return text.String()
}

// bookBefore books some pushes for each recipient of the campaign.
func (s *sendquota) bookBefore(recipients int, at time.Time) {
	for n := range campaignBookings {
		s.exec(`
			WITH stored AS (
			INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, ttl_ms, status, shard)
			SELECT gen_random_uuid(), p.tenant, key, name, 'push', '{}', at, at, at, at + interval '1 day', 86400000, 'scheduled', key & 255
			FROM (
				SELECT t.id AS tenant, ('x' || substr(encode(sha256(decode(replace(t.id::text, '-', ''), 'hex') || r.name::bytea), 'hex'), 1, 16))::bit(64)::bigint AS key, r.name,
					$2::timestamptz + $3::int * (1 + i % 3) * interval '25 minutes' AS at
				FROM tenants t, generate_series(0, $1::int - 1) AS i, LATERAL (SELECT 'user-' || i AS name) r WHERE t.name = 'campaigns'
			) p RETURNING *
			)
			INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, rank, push_id, tenant_id, channel, shard)
			SELECT recipient_key, send_at, next_at, expires_at, plan, 2, 2, id, tenant_id, channel, shard FROM stored`, recipients, at, n)
	}
	s.exec("VACUUM ANALYZE pushes, live")
}

// p50AndP99 writes the p50 and the p99.
func p50AndP99(latencies []time.Duration) string {
	return ms(testenv.Quantile(latencies, 0.5)) + ", " + ms(testenv.Quantile(latencies, 0.99))
}

// peakMemory returns the peak memory of a process in bytes, if the system reports it.
func peakMemory(l *lab, p *process.Process) (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	l.check(err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(rest, &bytes)
	l.check(err)
	return bytes << 10
}
