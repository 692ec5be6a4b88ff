package pause

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// Scope is the part of a tenant's sending that a pause stops.
type Scope string

// The scopes of a pause.
const (
	All      Scope = "all"      // everything; the pause has no name
	Channel  Scope = "channel"  // the pushes through the named channel
	Category Scope = "category" // the pushes of the named category
	Campaign Scope = "campaign" // the pushes of a campaign, which the name identifies by its id
)

// Scopes lists all scopes, the widest first.
var Scopes = []Scope{All, Channel, Category, Campaign}

// MaxPerTenant is the maximum number of a tenant's pauses, and of the operator's, without the one of everything, which can always be made.
// Programs keep them in memory.
const MaxPerTenant = 100

// MaxListed is the maximum number of pauses that concern a tenant: its own, and the operator's.
const MaxListed = 2 * (MaxPerTenant + 1)

// Pause stops sending: no attempt begins within its scope. It is in force from its creation until it is ended, or
// until its time is over.
type Pause struct {
	ID        uuid.UUID
	Tenant    uuid.UUID // Nil: the operator's, for all tenants
	Scope     Scope
	Name      string // of the channel or the category, or the id of the campaign; "": Scope is All
	Reason    string
	Until     time.Time // zero: until it is ended
	CreatedAt time.Time
}

// InForce reports whether the pause stops sending at a time.
func (p *Pause) InForce(now time.Time) bool { return p.Until.IsZero() || now.Before(p.Until) }

// Covers reports whether a push is within the scope of the pause. The push is of the tenant of the pause.
func (p *Pause) Covers(x *push.Push) bool {
	switch p.Scope {
	case All:
		return true
	case Channel:
		return p.Name == x.Channel
	case Category:
		return p.Name == x.Category
	case Campaign:
		return x.Campaign != uuid.Nil && p.Name == x.Campaign.String()
	}
	return false
}

// Same reports whether two pauses stop the same: they have one owner, scope and name.
func (p *Pause) Same(o *Pause) bool {
	return p.Tenant == o.Tenant && p.Scope == o.Scope && p.Name == o.Name
}

// Given names the members of a pause that a request gives. The others have their defaults in a new pause, and stay in one that is in force.
type Given struct{ Reason, Until bool }

// Repeated returns the pause, which is in force, after another request for the same, and whether that changes it: it takes over what the
// request gives.
func (p Pause) Repeated(by *Pause, given Given) (after Pause, changed bool) {
	after = p
	if given.Reason {
		after.Reason = by.Reason
	}
	if given.Until {
		after.Until = by.Until.Truncate(time.Microsecond) // as Postgres keeps it
	}
	return after, after.Reason != p.Reason || !after.Until.Equal(p.Until)
}

// Warning returns why the pause may not stop what was meant: no policy and no push has its category. "": nothing is known against it.
// known are the categories that a policy names, or that pushes have.
func (p *Pause) Warning(known []string) string {
	if p.Scope != Category || slices.Contains(known, p.Name) {
		return ""
	}
	return invalid.Suggested("no policy and no push has the category "+p.Name+" so far", p.Name, known)
}

// Extends reports whether the pause ends later than another one.
func (p *Pause) Extends(o *Pause) bool {
	return !o.Until.IsZero() && (p.Until.IsZero() || p.Until.After(o.Until))
}

// List holds pauses of one tenant, or of the operator.
type List []Pause

// Over returns the pause that stops a push at a time: of several the one that ends last; nil if none does.
func (l List) Over(x *push.Push, now time.Time) (over *Pause) {
	for i := range l {
		if p := &l[i]; p.InForce(now) && p.Covers(x) && (over == nil || p.Extends(over)) {
			over = p
		}
	}
	return over
}

// Position is a position in a list of pauses: after the one with this creation time and id.
type Position struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// Page is a page of pauses. Next is where the next page begins; nil: this is the last one.
type Page struct {
	Pauses []Pause
	Next   *Position
}

var (
	// ErrTooMany: the tenant has reached the maximum number of pauses.
	ErrTooMany = errors.New("the tenant already has the maximum number of pauses")
	// ErrOperators: the operator made the pause, so that a tenant cannot end it.
	ErrOperators = errors.New("the operator made the pause")
	// ErrNoCampaign: the tenant has no campaign of the pause's name.
	ErrNoCampaign = errors.New("there is no such campaign")
	// ErrPast: the end of the pause is not in the future.
	ErrPast = errors.New("the end of the pause is not in the future")
)
