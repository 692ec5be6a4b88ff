package delivery

import (
	"container/heap"
	"container/list"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

// fairQueue holds recipients of tenants that take turns: however many recipients of one tenant wait, the other tenants'
// recipients come in between. Of a tenant, the longest due come first. The zero value is empty.
type fairQueue struct {
	tenants map[uuid.UUID]*list.Element // elements of order
	order   list.List                   // of *tenantQueue, the next one first
	n       int
}

type tenantQueue struct {
	tenant uuid.UUID
	recipients
}

// len returns the number of waiting recipients.
func (q *fairQueue) len() int { return q.n }

// of returns the number of a tenant's waiting recipients.
func (q *fairQueue) of(tenant uuid.UUID) int {
	if e := q.tenants[tenant]; e != nil {
		return e.Value.(*tenantQueue).Len()
	}
	return 0
}

// push adds a recipient.
func (q *fairQueue) push(w booking.Due) {
	e := q.tenants[w.Tenant]
	if e == nil {
		if q.tenants == nil {
			q.tenants = map[uuid.UUID]*list.Element{}
		}
		e = q.order.PushBack(&tenantQueue{tenant: w.Tenant})
		q.tenants[w.Tenant] = e
	}
	heap.Push(&e.Value.(*tenantQueue).recipients, w)
	q.n++
}

// pop takes the next recipient of the next tenant that admitted accepts: the one that is due for longest, or a random one
// of a tenant for which careful returns true. With anyOf, it takes a random tenant instead of the next one.
func (q *fairQueue) pop(admitted func(uuid.UUID) bool, anyOf bool, careful func(uuid.UUID) bool) (d booking.Due, ok bool) {
	e := q.order.Front()
	if anyOf && e != nil {
		for range rand.IntN(q.order.Len()) {
			e = e.Next()
		}
	}
	for range q.order.Len() {
		t := e.Value.(*tenantQueue)
		switch {
		case !admitted(t.tenant):
		case anyOf || careful(t.tenant):
			return q.take(e, rand.IntN(t.Len())), true
		default:
			return q.take(e, 0), true
		}
		if e = e.Next(); e == nil {
			e = q.order.Front()
		}
	}
	return d, false
}

// cut keeps a tenant's longest due recipients, and drops the others.
func (q *fairQueue) cut(tenant uuid.UUID, keep int) (dropped []booking.Due) {
	t := q.tenants[tenant].Value.(*tenantQueue)
	slices.SortFunc(t.recipients, func(a, b booking.Due) int { return a.At.Compare(b.At) })
	dropped = slices.Clone(t.recipients[keep:])
	t.recipients = slices.Clip(t.recipients[:keep])
	q.n -= len(dropped)
	return dropped
}

// take takes a recipient of a tenant, which goes to the end of the order.
func (q *fairQueue) take(e *list.Element, i int) booking.Due {
	t := e.Value.(*tenantQueue)
	w := heap.Remove(&t.recipients, i).(booking.Due)
	if q.n--; t.Len() == 0 {
		q.order.Remove(e)
		delete(q.tenants, t.tenant)
		return w
	}
	q.order.MoveToBack(e)
	return w
}

// all calls do with every recipient.
func (q *fairQueue) all(do func(booking.Due)) {
	for _, e := range q.tenants {
		for _, d := range e.Value.(*tenantQueue).recipients {
			do(d)
		}
	}
}

// recipients is a heap, the earliest first.
type recipients []booking.Due

func (h recipients) Len() int           { return len(h) }
func (h recipients) Less(i, j int) bool { return h[i].At.Before(h[j].At) }
func (h recipients) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *recipients) Push(w any)        { *h = append(*h, w.(booking.Due)) }
func (h *recipients) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}
