package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Snapshot is what is known under the locks of all recipients of the orders.
type Snapshot struct {
	Now      time.Time
	Views    Views
	Existing []push.Push // that have the id of a draft
	Keyed    []Keyed     // of the Idempotency-Keys of drafts

	Terms  map[uuid.UUID]Terms        // of tenants with a policy of their own
	People map[quota.Recipient]Person // of whom anything is known
}

// Keyed is a push that a request with an Idempotency-Key has made. The push itself may be gone.
type Keyed struct {
	Key, Member uuid.UUID // as a push has them
	Hash        []byte
	Tenant, ID  uuid.UUID // of the push
}

// request is what is known of a request with an Idempotency-Key.
type request struct {
	tenant uuid.UUID
	hash   []byte
	made   map[uuid.UUID]uuid.UUID // the ids of pushes, by members
}

// Views holds what is known of recipients. A view shows at least [Order.Around] of every draft for its recipient.
type Views interface {
	// View returns the view of a recipient. It remembers what is changed in it.
	View(r quota.Recipient) *quota.View
	// Done says that one of the drafts for this recipient is decided.
	Done(r quota.Recipient)
}

// know notes what an Idempotency-Key has made, for drafts that ask for it again.
func (x *Decider) know(k Keyed) {
	r := x.requests[k.Key]
	if r == nil {
		r = &request{k.Tenant, k.Hash, map[uuid.UUID]uuid.UUID{}}
		x.requests[k.Key] = r
	}
	r.made[k.Member] = k.ID
}

// forget takes back what know has noted.
func (x *Decider) forget(k Keyed) {
	r := x.requests[k.Key]
	if delete(r.made, k.Member); len(r.made) == 0 {
		delete(x.requests, k.Key)
	}
}

func keyedOf(p push.Push) Keyed {
	return Keyed{p.IdempotencyID, p.RequestMember, p.IdempotencyHash, p.Tenant, p.ID}
}
