package delivery

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// naiveQueue is a levelQueue by brute force: it looks at everything that waits.
type naiveQueue struct {
	shares  push.Shares
	waiting []booking.Due
	tags    [3]float64
	now     float64
	turns   [3][]uuid.UUID // of each level, the tenants in their order
}

func (q *naiveQueue) push(d booking.Due) {
	i := d.Rank.Level().Index()
	if !slices.ContainsFunc(q.waiting, func(o booking.Due) bool { return o.Rank.Level() == d.Rank.Level() }) {
		q.tags[i] = max(q.tags[i], q.now)
	}
	if !slices.Contains(q.turns[i], d.Tenant) {
		q.turns[i] = append(q.turns[i], d.Tenant)
	}
	q.waiting = append(q.waiting, d)
}

func (q *naiveQueue) pop(admitted func(uuid.UUID) bool) (d booking.Due, ok bool) {
	var levels []push.Level
	for _, l := range push.Levels {
		if slices.ContainsFunc(q.waiting, func(o booking.Due) bool { return o.Rank.Level() == l && admitted(o.Tenant) }) {
			levels = append(levels, l)
		}
	}
	if len(levels) == 0 {
		return d, false
	}
	l := slices.MinFunc(levels, func(a, b push.Level) int { return cmp.Compare(q.tags[a.Index()], q.tags[b.Index()]) })
	i := l.Index()
	tenant := q.turns[i][slices.IndexFunc(q.turns[i], admitted)]
	best := -1
	for n, o := range q.waiting {
		if o.Rank.Level() == l && o.Tenant == tenant && (best < 0 || o.At.Before(q.waiting[best].At)) {
			best = n
		}
	}
	d = q.waiting[best]
	q.waiting = slices.Delete(q.waiting, best, best+1)
	q.turns[i] = slices.DeleteFunc(q.turns[i], func(o uuid.UUID) bool { return o == tenant })
	if slices.ContainsFunc(q.waiting, func(o booking.Due) bool { return o.Rank.Level() == l && o.Tenant == tenant }) {
		q.turns[i] = append(q.turns[i], tenant)
	}
	q.now = max(q.now, q.tags[i])
	q.tags[i] += 1 / float64(q.shares[i])
	for j := range q.tags { // a level that was passed over is behind by ten pushes of the least share at most
		q.tags[j] = max(q.tags[j], q.now-10/float64(min(q.shares[0], q.shares[1], q.shares[2])))
	}
	return d, true
}

// TestLevelQueue_Oracle compares the queue with one that looks at everything, while recipients come and go, and some
// tenants are held.
func TestLevelQueue_Oracle(t *testing.T) {
	t.Parallel()
	tenants := []uuid.UUID{{1}, {2}, {3}, {4}}
	rapid.Check(t, func(t *rapid.T) {
		shares := push.Shares{}
		for i := range shares {
			shares[i] = rapid.IntRange(1, 100).Draw(t, "share")
		}
		q, naive := &levelQueue{sharing: sharing{shares: shares}}, &naiveQueue{shares: shares}
		key := int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "comes") > 0 {
				key++
				d := booking.Due{
					RecipientKey: key, Tenant: rapid.SampledFrom(tenants).Draw(t, "tenant"), Rank: push.Rank(rapid.IntRange(0, int(push.Ranks)-1).Draw(t, "rank")),
					At: time.Unix(1e9+int64(rapid.IntRange(0, 1_000_000).Draw(t, "at")), key), // no two at the same time
				}
				q.push(d)
				naive.push(d)
				continue
			}
			held := rapid.SampledFrom(tenants).Draw(t, "held")
			admitted := func(tenant uuid.UUID) bool { return tenant != held }
			got, ok := q.pop(admitted, false, func(uuid.UUID) bool { return false })
			want, any := naive.pop(admitted)
			if ok != any || got != want {
				t.Fatalf("%v %t, want %v %t", got, ok, want, any)
			}
		}
		if q.len() != len(naive.waiting) {
			t.Fatalf("%d wait, want %d", q.len(), len(naive.waiting))
		}
	})
}

// TestSharing_Shares: while all levels wait, each gets its share within one push; what a level does not use goes to the
// others in the ratio of their shares; and it saves nothing up.
func TestSharing_Shares(t *testing.T) {
	t.Parallel()
	s := sharing{shares: push.Shares{70, 20, 10}}
	serve := func(n int, waits ...push.Level) (got [3]int) {
		for range n {
			for _, l := range s.order() {
				if slices.Contains(waits, l) {
					s.serve(l, 1)
					got[l.Index()]++
					break
				}
			}
		}
		return got
	}
	if got := serve(1000, push.Urgent, push.Normal, push.Bulk); got != [3]int{700, 200, 100} {
		t.Errorf("all levels: %v", got)
	}
	if got := serve(900, push.Urgent, push.Normal); got != [3]int{700, 200, 0} {
		t.Errorf("without bulk: %v", got)
	}
	s.begins(push.Bulk)
	if got := serve(100, push.Urgent, push.Normal, push.Bulk); got[2] > 11 {
		t.Errorf("bulk after a pause: %v", got)
	}
	if got := serve(10, push.Bulk); got != [3]int{0, 0, 10} {
		t.Errorf("bulk alone: %v", got)
	}
}

// TestSharing_Learn: the tags of all workers replace those of this one, but what it sent meanwhile, or could not report, counts.
func TestSharing_Learn(t *testing.T) {
	t.Parallel()
	s := sharing{shares: push.Shares{50, 25, 25}}
	s.serve(push.Urgent, 1)
	demanded := s.demand(func(l push.Level) bool { return l == push.Bulk })
	if demanded.Served != [3]int{1, 0, 0} || demanded.Waits != [3]bool{false, false, true} {
		t.Errorf("demand: %+v", demanded)
	}
	s.serve(push.Bulk, 2)
	s.learn(&pace.Tags{Now: 7, Level: [3]float64{7, 8, 9}}, demanded)
	if want := (pace.Tags{Now: 7, Level: [3]float64{7, 8, 9 + 2.0/25}}); s.tags != want {
		t.Errorf("learned %+v, want %+v", s.tags, want)
	}
	demanded = s.demand(func(push.Level) bool { return false })
	if s.learn(nil, demanded); s.served != [3]int{0, 0, 2} {
		t.Errorf("without Redis: %v is left to report", s.served)
	}
}

// TestSharing_PassedOver: a level that waited for long without being served, because its tenants were held, does not stop
// the others when it is served again.
func TestSharing_PassedOver(t *testing.T) {
	t.Parallel()
	s := sharing{shares: push.DefaultShares}
	s.begins(push.Bulk)
	for range 36_000 { // an hour at ten a second
		s.serve(push.Urgent, 1)
	}
	bulk := 0
	for range 80 {
		l := s.order()[0]
		if l == push.Normal {
			l = s.order()[1]
		}
		if s.serve(l, 1); l == push.Bulk {
			bulk++
		}
	}
	if bulk < 10 || bulk > 20 { // its share, and ten
		t.Errorf("%d of 80 were bulk", bulk)
	}
}
