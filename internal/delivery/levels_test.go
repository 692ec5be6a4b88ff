package delivery_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// levelTerms make codes urgent and news bulk, and limit nothing.
func levelTerms(t *testing.T) booking.Terms {
	t.Helper()
	terms, err := policy.Document{Categories: map[string]policy.Category{"code": {Level: "urgent"}, "news": {Level: "bulk"}}}.Compile([]string{"sms", "log"})
	testenv.Check(t, err)
	return terms
}

// bookOf books a push of a category for each of some recipients.
func (b *bundle) bookOf(t *testing.T, category, channel string, at time.Time, recipients ...string) (booked []push.Push) {
	t.Helper()
	o := booking.Order{Policy: levelTerms(t)}
	for _, r := range recipients {
		o.Drafts = append(o.Drafts, booking.Draft{Push: push.Push{
			Content: push.Content{Recipient: r, Channel: channel, Category: category, Message: json.RawMessage(`{}`)},
			ID:      push.NewID(at, push.RecipientKey(b.tenant, r)), Tenant: b.tenant, RequestedSendAt: at, SendAt: at, TTL: time.Hour,
		}})
	}
	decisions, err := b.store.Book(t.Context(), o)
	testenv.Check(t, err)
	for _, d := range decisions {
		booked = append(booked, d.Push)
	}
	return booked
}

// categories lists the categories of what sms has taken, in order.
func (f *workersBundle) categories() (all []string) {
	for _, took := range f.sms.all() {
		all = append(all, took.push.Category)
	}
	return all
}

// TestWorkers_UrgentFirst: codes that become due while hundreds of the same tenant's news wait leave before nearly all
// of them. Of what they do not use, nothing is lost.
func TestWorkers_UrgentFirst(t *testing.T) {
	t.Parallel()
	const news, codes = 200, 10
	f := setupWorkers(t, 3, pace.PerSpan(25, time.Second, 1))
	for _, p := range f.bookOf(t, "news", "sms", thisSecond().Add(-10*time.Second), names("n", news)...) {
		if p.Level != push.Bulk {
			t.Fatalf("news have the level %s", p.Level)
		}
	}
	f.wake(t)
	eventually(t, "some news are sent", func() bool { return len(f.sms.all()) >= 10 })
	f.bookOf(t, "code", "sms", thisSecond(), names("c", codes)...)
	f.wake(t)
	before := len(f.sms.all())
	count := func() (n int) {
		for _, c := range f.categories() {
			if c == "code" {
				n++
			}
		}
		return n
	}
	eventually(t, "all codes are sent", func() bool { return count() == codes })
	between := 0
	for i, c := range f.categories() {
		if i >= before && c == "news" {
			between++
		}
	}
	// One in eight is news; each worker may have taken a slot before, and the codes may be found a moment later.
	if between > codes+6 {
		t.Errorf("%d news left between the codes and the last of them", between)
	}
	f.audit(t, nil)
}

// TestWorkers_BulkHasItsShare: hundreds of codes that are due leave some slots to the news.
func TestWorkers_BulkHasItsShare(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 2, pace.PerSpan(50, time.Second, 1))
	f.bookOf(t, "code", "sms", thisSecond().Add(-10*time.Second), names("c", 300)...)
	f.bookOf(t, "news", "sms", thisSecond().Add(-time.Second), names("n", 100)...)
	f.wake(t)
	eventually(t, "160 are sent", func() bool { return len(f.sms.all()) >= 160 })
	news := 0
	for _, c := range f.categories()[:160] {
		if c == "news" {
			news++
		}
	}
	if news < 10 || news > 30 { // an eighth is 20
		t.Errorf("%d of 160 were news, want about an eighth", news)
	}
}

// TestWorkers_UrgentOfSameRecipient: a recipient has news that are due for long, and a code. The code is sent first, and
// the recipient never has two attempts at a time.
func TestWorkers_UrgentOfSameRecipient(t *testing.T) {
	t.Parallel()
	for name, speed := range map[string]pace.Speed{"any speed": {}, "limited": pace.PerSpan(50, time.Second, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupWorkers(t, 2, speed, func(c *delivery.Config) { c.Policy = nil })
			f.bookOf(t, "code", "sms", thisSecond().Add(-5*time.Second), names("r", 20)...) // first, because workers find them at once
			f.bookOf(t, "news", "sms", thisSecond().Add(-20*time.Second), names("r", 20)...)
			f.bookOf(t, "news", "sms", thisSecond().Add(-10*time.Second), names("r", 20)...)
			eventually(t, "all are sent", func() bool {
				f.wake(t)
				return len(f.sms.all()) >= 60
			})
			type seen struct{ code, news int }
			by := map[string]*seen{}
			last := map[string]time.Time{}
			var ids []uuid.UUID
			for i, took := range f.sms.all() {
				r := took.push.Recipient
				if by[r] == nil {
					by[r] = &seen{code: -1, news: -1}
				}
				switch {
				case took.push.Category == "code":
					by[r].code = i
				case by[r].news < 0:
					by[r].news = i
				}
				if took.push.Category == "news" && took.push.SendAt.Before(last[r]) {
					t.Errorf("the news of %s changed their order", r)
				}
				if took.push.Category == "news" {
					last[r] = took.push.SendAt
				}
				ids = append(ids, took.push.ID)
			}
			for r, s := range by {
				if s.code > s.news {
					t.Errorf("%s got news before the code", r)
				}
			}
			for _, id := range ids {
				got := f.read(t, id)
				for _, s := range got.Sends[:len(got.Sends)-1] {
					if !strings.HasPrefix(s.Error, "not sent: the worker was held up") { // on a very busy machine
						t.Errorf("%d attempts: %s", got.Attempts, s.Error)
					}
				}
			}
			f.audit(t, nil)
		})
	}
}
