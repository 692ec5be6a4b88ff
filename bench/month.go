package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

const (
	// monthSettings have four channels, one of which has a ceiling, and the console.
	monthSettings = "  sms: {type: log, throughput: {rate: 1, per: 1s}}\n  email: {type: log}\n  chat: {type: log}\nconsole: {enabled: true}\n"
	// monthCampaigns is how many campaigns the pushes are of.
	monthCampaigns = 10
	// monthViews is how often each page is opened.
	monthViews = 30
)

// measureMonth opens the calendar of a month in which very many pushes are scheduled, as somebody does who has signed in: of all, and
// with a map of each channel, and of each campaign.
func measureMonth(l *lab) {
	pushes := 50 * l.backlog
	s := l.newSendquota(nowhere, monthSettings)
	s.startWorker()
	c, err := client.New("http://"+s.addr, s.key, client.Config{})
	l.check(err)
	var campaigns []string
	for n := range monthCampaigns {
		draft, err := c.Campaigns.Create(l.Context(), "", client.NewCampaign{Name: fmt.Sprint("Campaign ", n), Channel: "push", Message: client.Message{"title": "Winter sale"}})
		l.check(err)
		campaigns = append(campaigns, draft.ID)
	}
	now := time.Now().UTC()
	from := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC) // no hour of it is over
	until := from.AddDate(0, 1, 0)
	s.fillMonth(pushes, from, until, campaigns)
	ahead, err := c.Records.Ahead(l.Context(), client.AheadOptions{From: from, Until: until, GroupBy: "day"})
	l.check(err)
	var counted int64
	for _, day := range ahead.Groups {
		counted += day.Scheduled
	}
	if counted != int64(pushes) {
		l.report.fault("month: %d of %d pushes are counted as ahead", counted, pushes)
	}
	l.eventually("the worker says how the channels are", func() (told bool) {
		s.query("SELECT EXISTS (SELECT FROM channel_views)", nil, &told)
		return told
	})

	browser := s.signIn()
	for _, by := range []struct{ split, name string }{{"", "of all"}, {"channel", "by channel"}, {"campaign", "by campaign"}} {
		page := fmt.Sprintf("http://%s/console/calendar?tz=utc&at=%s&split=%s", s.addr, from.Format("2006-01"), by.split)
		s.opened(browser, page)
		var took []time.Duration
		size := 0
		for range monthViews {
			began := time.Now()
			size = s.opened(browser, page)
			took = append(took, time.Since(began))
		}
		p99 := testenv.Quantile(took, 0.99)
		l.report.add(row{
			measurement: l.report.measuring, Name: fmt.Sprintf("Month view of %s scheduled pushes, %s (%d KB), p50 and p99", count(float64(pushes)), by.name, size>>10),
			Ours: p50AndP99(took), Theirs: "—", Ratio: "—", Wanted: "≤ 300 ms", OK: yes(p99 <= 300*time.Millisecond),
		})
	}
	l.report.note("Month view: the page of the console, from the request to the end of the answer. The pushes are scheduled in every hour of the month, through four channels, in three categories and %d campaigns.", monthCampaigns)
}

// fillMonth schedules pushes evenly over a time, for a tenth as many recipients, and has them counted, as the workers do.
func (s *sendquota) fillMonth(pushes int, from, until time.Time, campaigns []string) {
	s.exec(`
		WITH stored AS (
			INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, ttl_ms, status, campaign_id, shard)
			SELECT p.*, p.key & 255 FROM (
			SELECT gen_random_uuid(), t.id, ('x' || substr(encode(sha256(uuid_send(t.id) || convert_to(recipient, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint AS key, recipient,
				('{push,sms,email,chat}'::text[])[1 + n % 4], ('{marketing,news,receipts}'::text[])[1 + n % 3], '{"title":"Winter sale"}'::json, at, at, at, at + interval '1 day', 86400000, 'scheduled',
				($4::uuid[])[1 + n / 4 % array_length($4::uuid[], 1)]
			FROM tenants t, generate_series(0, $1::int - 1) AS n,
				LATERAL (SELECT 'user-' || n % ($1::int / 10) AS recipient, date_trunc('second', $2::timestamptz + ($3::timestamptz - $2) * (n::float8 / $1::int)) AS at) x) p
			RETURNING *
		)
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, bulk, push_id, tenant_id, channel, shard, campaign_id)
		SELECT recipient_key, send_at, next_at, expires_at, plan, 0, false, id, tenant_id, channel, shard, campaign_id FROM stored`, pushes, from, until, campaigns)
	s.exec("VACUUM ANALYZE pushes, live")
	st, err := store.Open(s.l.Context(), s.Database, store.Config{})
	s.l.check(err)
	defer st.Close()
	_, err = st.Recount(s.l.Context(), 0)
	s.l.check(err)
	s.exec("VACUUM ANALYZE ahead")
}

// signIn makes a user, and signs them in to the console as people do: with the link that the tool prints.
func (s *sendquota) signIn() *http.Client {
	const email, password = "ada@example.com", "six geese walk over the bridge"
	link, err := url.Parse(strings.TrimSpace(s.Tool("users", "create", "--tenant", "acme", "--email", email, "--role", "viewer")))
	s.l.check(err)
	jar, err := cookiejar.New(nil)
	s.l.check(err)
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	for _, form := range []struct {
		path   string
		fields url.Values
	}{{link.Path, url.Values{"password": {password}, "again": {password}}}, {"/console/sign-in", url.Values{"email": {email}, "password": {password}}}} {
		answer, err := browser.PostForm("http://"+s.addr+form.path, form.fields)
		s.l.check(err)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			s.l.Fatalf("POST %s: %s", form.path, answer.Status)
		}
	}
	return browser
}

// opened opens a page of the console to its end, and returns how many bytes it has.
func (s *sendquota) opened(browser *http.Client, page string) (size int) {
	answer, err := browser.Get(page)
	s.l.check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	s.l.check(err)
	if answer.StatusCode != http.StatusOK || answer.Request.URL.String() != page || !strings.Contains(string(text), "Booked ahead") {
		s.l.Fatalf("GET %s: %s at %s", page, answer.Status, answer.Request.URL)
	}
	return len(text)
}
