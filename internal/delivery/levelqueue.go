package delivery

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// levelQueue holds recipients by the service level of their due push. The levels share what is sent, and of each level,
// tenants take turns.
type levelQueue struct {
	sharing
	queues [len(push.Levels)]fairQueue
}

// at returns the queue of a level.
func (q *levelQueue) at(l push.Level) *fairQueue { return &q.queues[l.Index()] }

// len returns the number of waiting recipients. A recipient that waits in two levels counts twice.
func (q *levelQueue) len() (n int) {
	for i := range q.queues {
		n += q.queues[i].len()
	}
	return n
}

// of returns the number of a tenant's waiting recipients.
func (q *levelQueue) of(tenant uuid.UUID) (n int) {
	for i := range q.queues {
		n += q.queues[i].of(tenant)
	}
	return n
}

// push adds a recipient.
func (q *levelQueue) push(d booking.Due) {
	l := d.Rank.Level()
	if q.at(l).len() == 0 {
		q.begins(l)
	}
	q.at(l).push(d)
}

// pop takes the next recipient of the next level that has one: see [fairQueue.pop].
func (q *levelQueue) pop(admitted func(uuid.UUID) bool, anyOf bool, careful func(uuid.UUID) bool) (d booking.Due, ok bool) {
	for _, l := range q.order() {
		if d, ok = q.at(l).pop(admitted, anyOf, careful); ok {
			q.serve(l, 1)
			return d, true
		}
	}
	return d, false
}

// cut keeps a tenant's longest due recipients in each level, up to a number, and drops the others.
func (q *levelQueue) cut(tenant uuid.UUID, keep int) (dropped []booking.Due) {
	for i := range q.queues {
		if q.queues[i].of(tenant) > keep {
			dropped = append(dropped, q.queues[i].cut(tenant, keep)...)
		}
	}
	return dropped
}

// all calls do with every recipient.
func (q *levelQueue) all(do func(booking.Due)) {
	for i := range q.queues {
		q.queues[i].all(do)
	}
}

// waits reports whether a recipient waits in a level.
func (q *levelQueue) waits(l push.Level) bool { return q.at(l).len() > 0 }
