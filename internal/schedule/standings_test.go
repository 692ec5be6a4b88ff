package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
)

// askedStore counts the queries for recipients.
type askedStore struct {
	*store.Store
	asked int
}

func (s *askedStore) Standing(ctx context.Context, r quota.Recipient, file booking.Terms) (booking.Standing, error) {
	s.asked++
	return s.Store.Standing(ctx, r, file)
}

func (s *askedStore) Standings(ctx context.Context, tenant uuid.UUID, ids []string, file booking.Terms) (booking.Terms, map[string]booking.Person, error) {
	s.asked++
	return s.Store.Standings(ctx, tenant, ids, file)
}

// TestStandings_Batch: a batch reads its members' recipients in one query, whether it books them or only validates
// them.
func TestStandings_Batch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 40
	var described []booking.Description
	for i := range n / 2 {
		described = append(described, booking.Description{Recipient: fmt.Sprint(i), TimeZone: "Asia/Tokyo", Addresses: map[string]string{"log": "here"}})
	}
	if _, err := b.Describe(t.Context(), b.tenant, described); err != nil {
		t.Fatal(err)
	}
	local := func(r *schedule.Request) {
		r.SendAt, r.LocalTime = time.Time{}, time.Date(began.Year(), began.Month(), began.Day()+2, 9, 0, 0, 0, time.UTC)
	}
	late := func(r *schedule.Request) { r.SendAt = began.Add(-time.Hour) }
	for name, row := range map[string]struct {
		change func(i int, r *schedule.Request)
		most   int
		faults []string // for a described recipient, and for an unknown one
	}{
		"well":            {func(_ int, r *schedule.Request) { r.To = "there" }, 0, []string{"[]", "[]"}},
		"local times":     {func(_ int, r *schedule.Request) { local(r); r.To = "there" }, 1, []string{"[]", "[]"}},
		"faulty":          {func(_ int, r *schedule.Request) { late(r) }, 1, []string{"[send_at]", "[to send_at]"}},
		"faulty, to some": {func(_ int, r *schedule.Request) { late(r); r.To = "there" }, 0, []string{"[send_at]", "[send_at]"}},
		"both": {func(i int, r *schedule.Request) {
			if i%2 == 0 {
				late(r)
			} else {
				local(r)
				r.To = "there"
			}
		}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, books := range []bool{true, false} {
				asked := &askedStore{Store: b.store}
				svc := schedule.New(asked, b.cache, b.queue, b.metrics, func() time.Time { return began }, schedule.Config{
					Policy: threeRules, Channels: []string{"log"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour,
					Check: func(_, to string, _ json.RawMessage) (bad invalid.FieldErrors) {
						if to == "" {
							bad.Add("to", nil, "is required")
						}
						return bad
					},
				})
				members := make([]schedule.Member, n)
				var all []*schedule.Request
				for i := range members {
					r := request(time.Hour)
					r.Recipient = fmt.Sprint(i)
					row.change(i, &r)
					members[i].Request = r
					all = append(all, &members[i].Request)
				}
				var faults []string
				if books {
					if err := svc.SubmitBatch(t.Context(), b.tenant, members, false, schedule.Options{ValidateOnly: true}); err != nil {
						t.Fatal(err)
					}
				} else {
					validate := svc.Validator(t.Context(), b.tenant, slices.Values(all))
					for _, r := range all {
						fields := []string{}
						for _, f := range validate(*r) {
							fields = append(fields, f.Field)
						}
						faults = append(faults, fmt.Sprint(fields))
					}
				}
				if asked.asked > row.most {
					t.Errorf("books: %t: asked %d times", books, asked.asked)
				}
				if !books && row.faults != nil && (faults[0] != row.faults[0] || faults[n-1] != row.faults[1]) {
					t.Errorf("%s and %s, want %s", faults[0], faults[n-1], row.faults)
				}
			}
		})
	}
}
