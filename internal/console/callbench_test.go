package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkCall compares calls of the API as pages make them, in this process, with the same over a connection on loopback: a small
// one, and a list of 200 pushes.
func BenchmarkCall(b *testing.B) {
	s := setup(b)
	for i := range 200 {
		s.submit(fmt.Sprint("r", i), 26*time.Hour)
	}
	c := frame.New(s.handler, s.who, allScreens(), menu, frame.Config{})
	page := c.NewPage(httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/console/now", nil), s.who.Visitor)
	for _, call := range []struct {
		name, path string
		query      url.Values
	}{{"small", "/v1/caps", nil}, {"list", "/v1/pushes", url.Values{"page_size": {"200"}}}} {
		for _, way := range []struct {
			name string
			api  *client.Client
		}{{"in process", page.API}, {"over loopback", s.api}} {
			b.Run(call.name+" "+way.name, func(b *testing.B) {
				for b.Loop() {
					var answer map[string]any
					if err := way.api.Get(b.Context(), call.path, call.query, &answer); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCalendar opens the month of a million scheduled pushes: of all, with a map of each channel, and with one of each campaign.
func BenchmarkCalendar(b *testing.B) {
	s := setup(b)
	var campaigns []string
	for i := range 10 {
		campaigns = append(campaigns, s.draft(client.NewCampaign{Name: fmt.Sprint("Campaign ", i)}, "").ID)
	}
	now := time.Now().UTC()
	from := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC) // no hour of it is over
	testenv.Exec(b, s.url, `
		INSERT INTO ahead (tenant_id, hour, channel, category, campaign_id, n)
		SELECT $1, hour, channel, category, campaign, 12
		FROM generate_series(0, 743) h, LATERAL (SELECT $2::timestamptz + h * interval '1 hour' AS hour) at,
			unnest('{push,sms,email,chat}'::text[]) channel, unnest('{marketing,news,receipts}'::text[]) category, unnest($3::uuid[]) campaign`, [16]byte(s.tenant), from, campaigns)
	testenv.Exec(b, s.url, `VACUUM ANALYZE ahead`)
	for _, split := range []string{"all", "channel", "campaign"} {
		b.Run(split, func(b *testing.B) {
			var page reply
			for b.Loop() {
				page = s.get("/console/calendar?tz=utc&at=" + from.Format("2006-01") + "&split=" + strings.TrimPrefix(split, "all"))
			}
			page.has(b, http.StatusOK, "Scheduled messages")
			b.ReportMetric(float64(len(page.Body)>>10), "KiB/page")
		})
	}
}
