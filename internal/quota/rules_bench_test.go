package quota_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
)

// BenchmarkRules asks every question about rolling rules, rules with periods, and rules that count some kinds of pushes,
// for a recipient with ten bookings a day.
func BenchmarkRules(b *testing.B) {
	const day = 24 * time.Hour
	sms, news := &quota.Scope{Channels: []string{"sms"}}, &quota.Scope{Without: []string{"news"}}
	rolling := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}, {Name: "hour", Limit: 2, Window: time.Hour}, {Name: "day", Limit: 10, Window: day}}
	periods := quota.Policy{
		{Name: "hour", Limit: 1, Periods: beats{Every: time.Hour, Until: time.Hour}},
		{Name: "day", Limit: 10, Periods: beats{Every: day, Until: day}},
		{Name: "night", Periods: beats{Every: day, From: 8 * time.Hour, Until: 20 * time.Hour}, Quiet: true},
	}
	scoped := quota.Policy{
		{Name: "hour", Limit: 1, Window: time.Hour, Counts: sms},
		{Name: "week", Limit: 12, Window: 7 * day},
		{Name: "week", Limit: 12, Reserved: 2, Window: 7 * day, Counts: news},
		{Name: "day", Limit: 4, Periods: beats{Every: day, Until: day}, Counts: sms},
	}
	plain := crowd(36, 150*time.Minute)
	kinds := crowd(36, 150*time.Minute)
	for i := range kinds {
		kinds[i].Kind = [...]quota.Kind{{Channel: "sms"}, {Channel: "email", Category: "news"}, {Channel: "sms", Category: "offers"}}[i%3]
	}
	for _, row := range []struct {
		name     string
		policy   quota.Policy
		bookings []quota.Booking
	}{{"rolling", rolling, plain}, {"periods", periods, plain}, {"scoped", scoped, kinds}} {
		p, line, at := row.policy, quota.NewTimeline(row.bookings), noon.Add(45*time.Hour)
		free := make([]bool, 96)
		for _, question := range []struct {
			name string
			ask  func()
		}{
			{"Allows", func() { p.Allows(line, at) }},
			{"Violations", func() { p.Violations(line, at) }},
			{"Usage", func() { p.Usage(line, at) }},
			{"Next", func() { p.Next(line, at, time.Second) }},
			{"Previous", func() { p.Previous(line, at, time.Second) }},
			{"FreeAt", func() { p.FreeAt(line, noon.Add(day), 15*time.Minute, free) }},
			{"Blocked", func() { p.Blocked(line, noon.Add(day), noon.Add(2*day)) }},
			{"Decide", func() { p.Decide(quota.View{Timeline: line}, at, noon) }},
		} {
			b.Run(row.name+"/"+question.name, func(b *testing.B) {
				for b.Loop() {
					question.ask()
				}
			})
		}
	}
}
