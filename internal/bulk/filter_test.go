package bulk_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestRunner_Filters: a bulk change cancels the pushes that match each member of its filter, alone and together.
func TestRunner_Filters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sale := uuid.New()
	full := push.Filter{Recipient: "b", Channel: "sms", Category: "news", Campaign: sale, From: b.at.Add(time.Hour), Until: b.at.Add(2 * time.Hour)}
	for _, tt := range []struct {
		name   string
		filter push.Filter
		want   string // the names of the pushes
	}{
		{"recipient", push.Filter{Recipient: "b"}, "b"},
		{"channel", push.Filter{Channel: "sms"}, "b c"},
		{"category", push.Filter{Category: "news"}, "a b"},
		{"campaign", push.Filter{Campaign: sale}, "b d"},
		{"another campaign", push.Filter{Campaign: uuid.New()}, ""},
		{"from", push.Filter{From: b.at.Add(time.Hour)}, "b c d"}, // inclusive
		{"until", push.Filter{Until: b.at.Add(2 * time.Hour)}, "a b"},
		{"from and until", push.Filter{From: b.at.Add(time.Hour), Until: b.at.Add(3 * time.Hour)}, "b c"},
		{"from, in another week", push.Filter{From: b.at.Add(30 * 24 * time.Hour)}, "d"},
		{"all of them", full, "b"},
		{"all", push.Filter{}, "a b c d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			names := map[string]uuid.UUID{}
			for _, p := range []push.Push{
				{Content: push.Content{Recipient: "a", Channel: "email", Category: "news"}, SendAt: b.at},
				{Content: push.Content{Recipient: "b", Channel: "sms", Category: "news"}, Campaign: sale, SendAt: b.at.Add(time.Hour)},
				{Content: push.Content{Recipient: "c", Channel: "sms"}, SendAt: b.at.Add(2 * time.Hour)},
				{Content: push.Content{Recipient: "d", Channel: "email"}, Campaign: sale, SendAt: b.at.Add(40 * 24 * time.Hour)},
			} {
				p.Tenant, p.Message, p.TTL, p.RequestedSendAt = b.tenant, []byte(`{}`), time.Hour, p.SendAt
				p.ID = push.NewID(p.SendAt, push.RecipientKey(p.Tenant, p.Recipient))
				if _, err := b.store.Book(t.Context(), booking.Order{Policy: quota.Policy(nil), Now: time.Now(), Drafts: []booking.Draft{{Push: p}}}); err != nil {
					t.Fatal(err)
				}
				names[p.Recipient] = p.ID
			}
			p := b.run(t, b.create(t, bulkchange.Change{Action: bulkchange.Cancel, Filter: tt.filter}).ID)
			var canceled []string
			for name, id := range names {
				if b.push(t, id).Status == push.Canceled {
					canceled = append(canceled, name)
				}
			}
			slices.Sort(canceled)
			if got := strings.Join(canceled, " "); got != tt.want || p.Status != bulkchange.Done || int(p.Changed) != len(canceled) || p.Found != p.Changed {
				t.Errorf("canceled %q, want %q; %+v", got, tt.want, p)
			}
			b.run(t, b.create(t, bulkchange.Change{Action: bulkchange.Cancel}).ID) // the rest
		})
	}
}
