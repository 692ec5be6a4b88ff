package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/quota"
)

// BenchmarkTerms decides about one more push that is allowed, of a recipient with 36 bookings, and counts the usage: under
// three plain rules, and under twelve scoped ones, two of them of a calendar, with quiet hours.
func BenchmarkTerms(b *testing.B) {
	limit := 100
	rolling := func(i int, windows ...string) (rules []policy.Rule) {
		for _, w := range windows {
			rules = append(rules, policy.Rule{Name: fmt.Sprintf("rule-%d-%s", i, w), Limit: &limit, Window: w})
		}
		return rules
	}
	plain := policy.Document{Rules: rolling(0, "1m", "1h", "24h")}
	var scoped policy.Document
	for i, name := range []string{"sms", "email"} {
		for _, r := range rolling(i, "1m", "1h", "6h", "24h", "72h") {
			r.Channels = []string{name}
			scoped.Rules = append(scoped.Rules, r)
		}
	}
	scoped.Rules = append(scoped.Rules,
		policy.Rule{Name: "week", Limit: &limit, Per: "week", Zone: "recipient", Categories: []string{"news"}},
		policy.Rule{Name: "day", Limit: &limit, Per: "day", Zone: "Europe/Berlin", Channels: []string{"sms"}})
	scoped.QuietHours = []policy.QuietHours{{Name: "night", From: "22:00", Until: "08:00", Zone: "recipient"}}

	begin, kind := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), quota.Kind{Channel: "sms", Category: "news"}
	var bookings []quota.Booking
	for i := range 36 {
		k := quota.Kind{Channel: policytest.Channels[i%2], Category: policytest.Categories[i%3]}
		bookings = append(bookings, quota.Booking{ID: uuid.UUID{15: byte(i)}, At: begin.Add(time.Duration(i) * 150 * time.Minute), Kind: k})
	}
	for _, row := range []struct {
		name string
		doc  policy.Document
	}{{"plain", plain}, {"twelve scoped rules", scoped}} {
		b.Run(row.name, func(b *testing.B) {
			terms, err := row.doc.Compile(policytest.Channels)
			if err != nil {
				b.Fatal(err)
			}
			line, at := quota.NewTimeline(bookings), begin.Add(36*time.Hour)
			person := policy.Person{Zone: location(b, "Europe/Berlin")}
			for b.Loop() {
				p := terms.For(person, kind)
				if !p.Allows(line, at) || len(p.Usage(line, at)) < 3 {
					b.Fatal("refused")
				}
			}
		})
	}
}

func location(b testing.TB, name string) *time.Location {
	in, err := time.LoadLocation(name)
	if err != nil {
		b.Fatal(err)
	}
	return in
}
