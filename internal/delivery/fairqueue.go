package delivery

import (
	"container/heap"
	"container/list"
	"math/rand/v2"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// fairQueue holds wake-ups of many tenants, which take turns: however many of one tenant
// wait, those of another come next but one. Of a tenant, the longest due come first. The
// zero value is empty.
type fairQueue struct {
	tenants map[uuid.UUID]*list.Element // in order
	order   list.List                   // of *tenantQueue, the next one first
	n       int
}

type tenantQueue struct {
	tenant uuid.UUID
	wakeUps
}

// len is how many wake-ups wait.
func (q *fairQueue) len() int { return q.n }

// of is how many of a tenant wait.
func (q *fairQueue) of(tenant uuid.UUID) int {
	if e := q.tenants[tenant]; e != nil {
		return e.Value.(*tenantQueue).Len()
	}
	return 0
}

// push adds a wake-up.
func (q *fairQueue) push(w push.WakeUp) {
	e := q.tenants[w.Tenant]
	if e == nil {
		if q.tenants == nil {
			q.tenants = map[uuid.UUID]*list.Element{}
		}
		e = q.order.PushBack(&tenantQueue{tenant: w.Tenant})
		q.tenants[w.Tenant] = e
	}
	heap.Push(&e.Value.(*tenantQueue).wakeUps, w)
	q.n++
}

// pop takes the next wake-up. There must be one.
func (q *fairQueue) pop() push.WakeUp { return q.take(q.order.Front(), 0) }

// popAny takes any wake-up. There must be one.
func (q *fairQueue) popAny() push.WakeUp {
	e := q.order.Front()
	for range rand.IntN(q.order.Len()) {
		e = e.Next()
	}
	return q.take(e, rand.IntN(e.Value.(*tenantQueue).Len()))
}

// take takes a wake-up of a tenant, which goes to the end of the order.
func (q *fairQueue) take(e *list.Element, i int) push.WakeUp {
	t := e.Value.(*tenantQueue)
	w := heap.Remove(&t.wakeUps, i).(push.WakeUp)
	if q.n--; t.Len() == 0 {
		q.order.Remove(e)
		delete(q.tenants, t.tenant)
		return w
	}
	q.order.MoveToBack(e)
	return w
}

// all calls do with every wake-up.
func (q *fairQueue) all(do func(push.WakeUp)) {
	for _, e := range q.tenants {
		for _, w := range e.Value.(*tenantQueue).wakeUps {
			do(w)
		}
	}
}

// tenantsWith lists the tenants of which at least n wait.
func (q *fairQueue) tenantsWith(n int) (tenants []uuid.UUID) {
	for tenant := range q.tenants {
		if q.of(tenant) >= n {
			tenants = append(tenants, tenant)
		}
	}
	return tenants
}

// wakeUps is a heap, the earliest first.
type wakeUps []push.WakeUp

func (h wakeUps) Len() int           { return len(h) }
func (h wakeUps) Less(i, j int) bool { return h[i].At.Before(h[j].At) }
func (h wakeUps) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *wakeUps) Push(w any)        { *h = append(*h, w.(push.WakeUp)) }
func (h *wakeUps) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}
