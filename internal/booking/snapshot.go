package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Snapshot is the data that was read under the locks of all recipients of the orders.
type Snapshot struct {
	Now      time.Time
	Views    Views
	Existing []push.Push // with the id of a draft
	Keyed    []Keyed     // for the Idempotency-Keys of drafts

	Own    func(tenant uuid.UUID, channel string) OwnChannel // the tenant's own channel of a name; nil: no tenant has one
	Terms  map[uuid.UUID]Terms                               // of tenants with a policy of their own
	People map[quota.Recipient]Person                        // recipients with stored data

	Suppressed map[int64]suppression.Entry // suppressed addresses, by key
}

// Keyed is a push that was created with an Idempotency-Key. The push itself may be deleted.
type Keyed struct {
	Key, Member uuid.UUID // as in a push
	Hash        []byte
	Tenant, ID  uuid.UUID // of the push
}

// request is an earlier request with an Idempotency-Key.
type request struct {
	tenant uuid.UUID
	hash   []byte
	made   map[uuid.UUID]uuid.UUID // the ids of its pushes, by member
}

// Views holds the bookings of recipients. A view covers at least [Order.Around] of every draft for its recipient.
type Views interface {
	// View returns the view of a recipient. Changes to it are kept.
	View(r quota.Recipient) *quota.View
	// Done reports that one draft for this recipient is decided.
	Done(r quota.Recipient)
}

// know records the push of an Idempotency-Key, for drafts that repeat the request.
func (x *Decider) know(k Keyed) {
	r := x.requests[k.Key]
	if r == nil {
		r = &request{k.Tenant, k.Hash, map[uuid.UUID]uuid.UUID{}}
		x.requests[k.Key] = r
	}
	r.made[k.Member] = k.ID
}

// forget undoes know.
func (x *Decider) forget(k Keyed) {
	r := x.requests[k.Key]
	if delete(r.made, k.Member); len(r.made) == 0 {
		delete(x.requests, k.Key)
	}
}

func keyedOf(p push.Push) Keyed {
	return Keyed{p.IdempotencyID, p.RequestMember, p.IdempotencyHash, p.Tenant, p.ID}
}
