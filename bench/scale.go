package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// fewRows is the size of the small system in the comparison.
const fewRows = 10_000

// measureScale compares a system with very many pushes and one with few, in all kinds of requests and in delivery, and
// measures the cost of a push in its life.
func measureScale(l *lab) {
	provider := l.startProvider()
	large, small := l.newSendquota(provider.url()), l.newSendquota(provider.url())
	l.recipients.Add(int64(l.rows)) // the submits are for recipients that have nothing yet
	small.fill(fewRows)
	began := time.Now()
	large.fill(l.rows)
	testenv.Say("  %s pushes are stored, after %s", count(float64(l.rows)), time.Since(began).Round(time.Second))
	l.report.Life = l.measureLives(large, small, provider)
	for _, ask := range asks() {
		l.compareSizes(large, small, ask)
	}
	if o := small.Exec("sendquota", "audit"); o.Status != 0 {
		l.report.fault("scale: sendquota audit: %s%s", o.Out, o.Err)
	}
	l.report.note("A list is asked for page by page until a page has a push: as many requests as that takes count as one list. " +
		"The processors' time below is for each request instead of each push, and of a list for each list.")
}

// fill stores pushes of one tenant over 60 days, 30 of them past, for a tenth as many recipients. Of the past pushes,
// one in a hundred each has failed, was canceled, or has expired; the others were sent. One in ten uses the channel
// sms, and one in a thousand rare. One in ten thousand has the category rare.
func (s *sendquota) fill(rows int) {
	s.exec(`SELECT make_partitions(parent, now() - interval '5 weeks', now() + interval '5 weeks') FROM unnest('{pushes, sends}'::text[]) parent`)
	s.exec(`
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, ttl_ms,
			status, freed, plan, attempts, last_error, created_at, updated_at, shard)
		SELECT p.*, p.key & 255 FROM (
		SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(h, 1, 3) || '8' || substr(h, 4, 15))::uuid, t.id,
			('x' || substr(encode(sha256(uuid_send(t.id) || convert_to(recipient, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint AS key, recipient,
			CASE WHEN n % 1000 = 500 THEN 'rare' WHEN n % 10 = 0 THEN 'sms' ELSE 'push' END, CASE WHEN n % 10000 = 5000 THEN 'rare' ELSE 'marketing' END,
			'{"title":"Winter sale","body":"Everything must go, until Sunday.","data":{"campaign":"winter","page":"/sale"}}'::json, at, at, at, at + interval '1 hour', 3600000,
			status, status NOT IN ('scheduled', 'sent'), CASE status WHEN 'scheduled' THEN 1 ELSE 3 END, (status IN ('sent', 'failed'))::int, CASE WHEN status IN ('failed', 'expired') THEN 'the reason' ELSE '' END, at - interval '1 hour',
			CASE status WHEN 'expired' THEN at + interval '1 hour' ELSE at END
		FROM tenants t, generate_series(0, $1::int - 1) AS n,
			LATERAL (SELECT md5(n::text) AS h, 'user-' || lpad((n::bigint * 7919 % ($1::int / 10))::text, 10, '0') AS recipient,
				date_trunc('second', clock_timestamp()) + interval '60 days' * (n::float8 / $1::int - 0.5) + CASE WHEN n >= $1::int / 2 THEN interval '2 days' ELSE interval '-2 hours' END AS exact) x,
			LATERAL (SELECT date_trunc('second', exact) AS at, CASE WHEN n >= $1::int / 2 THEN 'scheduled' WHEN n % 100 = 1 THEN 'failed' WHEN n % 100 = 2 THEN 'canceled' WHEN n % 100 = 3 THEN 'expired' ELSE 'sent' END AS status) y) p`, rows)
	s.exec(`
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, rank, push_id, tenant_id, channel, shard)
		SELECT recipient_key, send_at, next_at, expires_at, plan, 2, 2, id, tenant_id, channel, shard FROM pushes WHERE status = 'scheduled'`)
	s.exec(`
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, handed_at, ended_at, outcome, shard)
		SELECT id, 1, tenant_id, recipient_key, recipient, channel, send_at, send_at + interval '1 minute', CASE status WHEN 'sent' THEN send_at + interval '5 ms' END,
			send_at + interval '20 ms', CASE status WHEN 'sent' THEN 'delivered' ELSE 'refused' END, shard
		FROM pushes WHERE status IN ('sent', 'failed')`)
	s.exec("VACUUM ANALYZE")
}

// ask is a kind of request.
type ask struct {
	name, unit   string
	method, path string
	body         string
	conns        int
	expect       int
}

const listPath = "/v1/pushes?"

// asks lists the kinds of requests.
func asks() []ask {
	all := []ask{
		{"Submits, for new recipients", "submits/s", "POST", "/v1/pushes", pushBody(farAhead()), 256, 201},
		{"Slots of a recipient", "answers/s", "GET", "/v1/recipients/user-" + placeholder + "/slots", "", 64, 200},
		{"Checks of a quota", "checks/s", "POST", "/v1/quota/check", `{"recipient":"user-` + placeholder + `","send_at":"` + inUTC(50*time.Hour) + `"}`, 64, 200},
	}
	values := strings.NewReplacer("{recipient}", "user-"+placeholder, "{now}", inUTC(0), "{ahead}", inUTC(240*time.Hour), "{ago}", inUTC(-240*time.Hour))
	for _, filter := range []string{
		"no filter", "recipient={recipient}", "status=scheduled", "status=sent", "status=failed", "status=canceled", "status=expired",
		"channel=push", "channel=rare", "category=marketing", "category=rare", "from={ahead}", "until={ago}", "status=scheduled&from={now}",
	} {
		query := strings.TrimPrefix(values.Replace(filter), "no filter")
		all = append(all, ask{"List by " + filter, "lists/s", "GET", listPath + query, "", 16, 200})
	}
	return all
}

// compareSizes compares how fast the two systems answer.
func (l *lab) compareSizes(large, small *sendquota, a ask) {
	ours, theirs := large.asked(a, l.rows), small.asked(a, fewRows)
	l.profiled(a.name, large, func() {
		rounds := l.compare(ours, theirs)
		for i := range rounds.ours {
			rounds.ours[i] /= float64(len(ours.requests))
			rounds.theirs[i] /= float64(len(theirs.requests))
		}
		l.report.compare(a.name, rounds, a.unit, 0.9)
	})
	was := l.report.measuring
	l.report.measuring = a.name
	l.report.used(count(float64(l.rows))+" pushes", max(1, ours.measured/len(ours.requests)), ours.cpu)
	l.report.used(count(fewRows)+" pushes", max(1, theirs.measured/len(theirs.requests)), theirs.cpu)
	l.report.measuring = was
}

// asked returns the load of a kind of request on a system of this size. For a list it is the pages up to the first one
// with a push. Submits are for recipients without pushes, all other requests for recipients with pushes.
func (s *sendquota) asked(a ask, rows int) *counted {
	requests := []*request{newRequest(a.method, a.path, s.key, a.body)}
	if strings.HasPrefix(a.path, listPath) && len(requests[0].spots) == 0 {
		for next := s.afterEmpty(a.path); next != ""; {
			path := a.path + "&page_token=" + url.QueryEscape(next)
			requests = append(requests, newRequest(a.method, path, s.key, a.body))
			next = s.afterEmpty(path)
		}
	}
	next := s.l.fresh(1)
	if a.expect != http.StatusCreated {
		next = func() int64 { return rand.Int64N(int64(rows / 10)) }
	}
	return &counted{load: load{addr: s.addr, conns: a.conns, requests: requests, next: next, expect: a.expect}, pushes: 1}
}

// afterEmpty returns the token of the page after one that has no push.
func (s *sendquota) afterEmpty(path string) string {
	req, err := http.NewRequestWithContext(s.l.Context(), http.MethodGet, "http://"+s.addr+path, nil)
	s.l.check(err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	res, err := http.DefaultClient.Do(req)
	s.l.check(err)
	defer res.Body.Close()
	var page struct {
		Pushes []struct{} `json:"pushes"`
		Next   string     `json:"next_page_token"`
	}
	s.l.check(json.NewDecoder(res.Body).Decode(&page))
	if res.StatusCode != http.StatusOK {
		s.l.Fatalf("%s: %s", path, res.Status)
	}
	if len(page.Pushes) > 0 {
		return ""
	}
	return page.Next
}
