package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// The pushes that wait for a slow channel, which sends ten a second, with three workers.
const (
	slowRate       = 10
	newsletters    = 3000
	fewNewsletters = 500 // without levels: all of them leave before the codes
	codes          = 50  // in a minute
	levelWorkers   = 3
	bookedAtOnce   = 500
)

// levelsRun records the arrivals at the provider of a slow channel.
type levelsRun struct {
	late      []time.Duration // of the codes
	most      int             // pushes in any second
	perSecond float64         // pushes, until the last code
}

// measureLevels measures how late urgent pushes of a tenant leave a slow channel, while newsletters of the same tenant wait
// for it.
func measureLevels(l *lab) {
	provider := l.startProvider()
	with := l.runLevels(provider, `categories: {code: {level: urgent}, news: {level: bulk}}`, newsletters)
	without := l.runLevels(provider, `categories: {}`, fewNewsletters)
	p99 := testenv.Quantile(with.late, 0.99)
	l.report.add(row{
		measurement: l.report.measuring,
		Name:        fmt.Sprintf("%d urgent pushes in a minute, through a channel of %d a second, behind %s waiting bulk ones, with %d workers", codes, slowRate, count(newsletters), levelWorkers),
		Ours:        lateness(with.late), Theirs: fmt.Sprintf("%s (without levels, behind %d)", lateness(without.late), fewNewsletters),
		Wanted: "p99 ≤ 2 s; at most 11 in any second", OK: yes(p99 <= 2*time.Second && with.most <= slowRate+1),
	})
	l.report.note("Levels: at most %d pushes arrived in any second, and %.1f a second until the last urgent one: what these did not use went to the bulk ones.", with.most, with.perSecond)
}

// runLevels books newsletters that are due at once and codes that become due in the next minute, and waits until all codes
// have arrived.
func (l *lab) runLevels(provider providerClient, categories string, news int) (r levelsRun) {
	s := l.newSendquota(provider.url(), fmt.Sprintf("  slow: {type: webhook, url: %q, allow_private_addresses: true, throughput: {rate: %d}}\npolicy: {rules: [], %s}\n",
		provider.url(), slowRate, categories))
	first := time.Now().Add(10 * time.Second).UTC().Truncate(time.Second)
	for range news / bookedAtOnce {
		s.bookSlow("news", slices.Repeat([]time.Time{first}, bookedAtOnce)...)
	}
	var at []time.Time
	for n := range codes {
		at = append(at, first.Add(time.Duration(n)*time.Minute/codes))
	}
	s.bookSlow("code", at...)
	var workers []*process.Process
	for range levelWorkers {
		workers = append(workers, l.watch(s.Start("worker", "SENDQUOTA_METRICS_ADDR="+testenv.FreeAddr(l))))
	}
	var sent int
	testenv.Say("  %d newsletters and %d codes are booked, %s ahead", news, codes, time.Until(first).Round(time.Millisecond))
	l.eventually("all codes have left", func() bool {
		s.query(`SELECT count(*) FROM pushes WHERE category = 'code' AND status = 'sent'`, nil, &sent)
		return sent == codes
	})
	for _, w := range workers {
		l.stop(w)
	}
	r.read(s, provider.take(), first)
	testenv.Say("  %d codes behind %d newsletters: %s", codes, news, lateness(r.late))
	s.proveExact("levels", news+codes)
	return r
}

// bookSlow books pushes through the slow channel, each for another recipient.
func (s *sendquota) bookSlow(category string, at ...time.Time) {
	var pushes []string
	for _, t := range at {
		pushes = append(pushes, fmt.Sprintf(`{"recipient":"user-%s","channel":"slow","category":%q,"send_at":%q,"message":{"body":"Hello"}}`,
			placeholder, category, t.Format(time.RFC3339)))
	}
	s.l.drive(load{
		addr: s.addr, conns: 1, total: 1, expect: 200, next: s.l.fresh(int64(len(at))),
		requests: []*request{newRequest("POST", "/v1/pushes/batch", s.key, `{"pushes":[`+strings.Join(pushes, ",")+`]}`)},
	})
}

// read compares the arrivals with the promised times.
func (r *levelsRun) read(s *sendquota, arrivals []arrival, first time.Time) {
	codesAt := map[string]time.Time{}
	rows, err := s.db.Query(s.l.Context(), `SELECT id::text, send_at FROM pushes WHERE category = 'code'`)
	s.l.check(err)
	var (
		id string
		at time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		codesAt[id] = at
		return nil
	})
	s.l.check(err)
	last, seconds := first, map[int64]int{}
	for _, a := range arrivals {
		if seconds[a.at.Unix()]++; seconds[a.at.Unix()] > r.most {
			r.most = seconds[a.at.Unix()]
		}
		if due, ok := codesAt[a.push]; ok {
			r.late = append(r.late, a.at.Sub(due))
			if a.at.After(last) {
				last = a.at
			}
		}
	}
	n := 0
	for _, a := range arrivals {
		if a.at.Before(last) {
			n++
		}
	}
	r.perSecond = float64(n) / last.Sub(first).Seconds()
}
