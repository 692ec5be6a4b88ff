package console

import (
	"testing"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkCalendar makes the page of a month of a million scheduled pushes: over four channels, three categories and ten campaigns, in
// every hour. It is to take 300 ms at most, with the maps of channels or campaigns, too.
func BenchmarkCalendar(b *testing.B) {
	s := setup(b)
	month := noon().AddDate(0, 1, 0).Format("2006-01") // no hour of it is over
	testenv.Exec(s.t, s.url, `
		INSERT INTO ahead (tenant_id, hour, channel, category, campaign_id, n)
		SELECT $1, h, 'channel ' || c, 'category ' || k % 3, md5('campaign ' || k)::uuid, 35
		FROM generate_series(($2 || '-01 00:00Z')::timestamptz, ($2 || '-01 00:00Z')::timestamptz + interval '743 hours', '1 hour') h, generate_series(1, 4) c, generate_series(1, 10) k`, [16]byte(s.tenant), month)
	testenv.Exec(s.t, s.url, `ANALYZE ahead`)
	for _, split := range []string{"", string(push.ByChannel), string(push.ByCampaign)} {
		b.Run("split by "+split, func(b *testing.B) {
			for b.Loop() {
				r := s.get("/console/calendar?tz=utc&at=" + month + "&split=" + split)
				if r.Status != 200 || len(r.Body) < 100_000 {
					b.Fatal(r.Status, len(r.Body))
				}
				b.ReportMetric(float64(len(r.Body)), "bytes")
			}
		})
	}
}
