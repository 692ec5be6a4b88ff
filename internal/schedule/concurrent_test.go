package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

// rush submits 64 concurrent requests to two API processes.
func rush(t *testing.T, bundles [2]*bundle, tenant uuid.UUID, ask func(i int) (schedule.Request, schedule.Options)) (results []booking.Decision, errs []error) {
	t.Helper()
	const n = 64
	results, errs = make([]booking.Decision, n), make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r, o := ask(i)
			<-start
			results[i], errs[i] = bundles[i%2].Submit(t.Context(), tenant, r, o)
		})
	}
	close(start)
	wg.Wait()
	return results, errs
}

func twoBundles(t *testing.T, s servers) [2]*bundle {
	t.Helper()
	return [2]*bundle{s.open(t, threeRules), s.beside(t).open(t, threeRules)}
}

// TestSubmit_OneWinner: of 64 concurrent requests for one place at two API processes one is booked, whatever the cache
// holds.
func TestSubmit_OneWinner(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	anna := func(tenant uuid.UUID) quota.Recipient { return quota.Recipient{Tenant: tenant, ID: "anna"} }
	for name, row := range map[string]struct {
		servers servers
		prepare func(b *bundle)
	}{
		"cold":          {s, func(*bundle) {}},
		"without Redis": {s.withoutRedis(), func(*bundle) {}},
		"warm": {s, func(b *bundle) {
			b.submit(t, 10*time.Hour)
			b.submit(t, 11*time.Hour)
			b.flush(t)
		}},
		"warm and wrong": {s, func(b *bundle) {
			b.submit(t, 10*time.Hour)
			b.submit(t, 11*time.Hour)
			b.flush(t)
			b.cache.Hold(anna(b.tenant), quota.Booking{ID: uuid.New(), At: began.Add(5 * time.Hour)})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bundles := twoBundles(t, row.servers)
			row.prepare(bundles[0])
			_, errs := rush(t, bundles, bundles[0].tenant, func(i int) (schedule.Request, schedule.Options) {
				return request(time.Hour + time.Duration(i%40)*time.Second), schedule.Options{}
			})
			won := 0
			for _, err := range errs {
				var refusal *schedule.Refusal
				switch {
				case err == nil:
					won++
				case !errors.As(err, &refusal) || len(refusal.Violations) == 0 || len(refusal.Violations[0].Conflicts) == 0 || refusal.Next.IsZero():
					t.Errorf("refused without a reason: %+v", err)
				}
			}
			if won != 1 {
				t.Errorf("%d have won", won)
			}
			findings, err := bundles[0].store.Audit(t.Context(), threeRules, began)
			findings = slices.DeleteFunc(findings, func(f audit.Finding) bool { return f.Tenant != bundles[0].tenant })
			if len(findings) > 0 || err != nil {
				t.Errorf("audit: %+v, %v", findings, err)
			}
		})
	}
}

// TestSubmit_ConcurrentReplays: the same keyed request makes one push at two API processes, and every caller gets it.
func TestSubmit_ConcurrentReplays(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	bundles := twoBundles(t, s)
	results, errs := rush(t, bundles, bundles[0].tenant, func(int) (schedule.Request, schedule.Options) {
		return request(time.Hour), schedule.Options{IdempotencyKey: "key", RequestHash: []byte("body")}
	})
	first := 0
	for i, res := range results {
		if errs[i] != nil || res.Push.ID != results[0].Push.ID || !res.Push.SendAt.Equal(began.Add(time.Hour)) || res.Usage[0].Used != 1 {
			t.Fatalf("%+v, %v", res, errs[i])
		}
		if res.Outcome != booking.Replayed {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d results are not replays", first)
	}
	page, err := bundles[0].List(t.Context(), bundles[0].tenant, filterAll, positionFirst, 10)
	list := page.Pushes
	if err != nil || len(list) != 1 {
		t.Errorf("%d pushes, %v", len(list), err)
	}
}

// TestSubmit_ConcurrentKeyReuse: of different requests with one key one is booked.
func TestSubmit_ConcurrentKeyReuse(t *testing.T) {
	t.Parallel()
	bundles := twoBundles(t, newServers(t))
	_, errs := rush(t, bundles, bundles[0].tenant, func(i int) (schedule.Request, schedule.Options) {
		r := request(time.Hour)
		r.Recipient = fmt.Sprint("recipient ", i)
		return r, schedule.Options{IdempotencyKey: "key", RequestHash: fmt.Append(nil, "body ", i)}
	})
	served := 0
	for _, err := range errs {
		if err == nil {
			served++
		} else if !errors.Is(err, push.ErrKeyReused) {
			t.Error(err)
		}
	}
	if served != 1 {
		t.Errorf("%d were served", served)
	}
}
