package quota_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
)

// BenchmarkDecide decides about one more push of a recipient with ten bookings a day, under the three rules of the
// default policy.
func BenchmarkDecide(b *testing.B) {
	p := quota.Policy{{Name: "per-minute", Limit: 1, Window: time.Minute}, {Name: "per-hour", Limit: 5, Window: time.Hour}, {Name: "per-day", Limit: 10, Window: 24 * time.Hour}}
	line := quota.NewTimeline(crowd(36, 150*time.Minute))
	b.Run("allows and usage", func(b *testing.B) {
		at := noon.Add(46*time.Hour + time.Minute)
		for b.Loop() {
			if p.Allows(line, at) || p.Usage(line, at)[0].Used != 0 {
				b.Fatal("allowed")
			}
		}
	})
	b.Run("violations and free times", func(b *testing.B) {
		at := noon.Add(45 * time.Hour)
		for b.Loop() {
			if d, _ := p.Decide(quota.View{Timeline: line}, at, noon.AddDate(-1, 0, 0)); d.Allowed() || d.Next.IsZero() || d.Previous.IsZero() {
				b.Fatalf("%+v", d)
			}
		}
	})
}
