// Package pushes books, changes, cancels and reads pushes.
package pushes

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store books, changes and reads pushes.
type Store struct {
	db     *pg.DB
	terms  *terms.Store
	Crowds crowds // recipients with many bookings

	bookGroups   pg.LaneGroups[booking.Order, []booking.Decision] // single pushes
	bookSlots    *bulkhead.Bulkhead[uuid.UUID]                    // limits single pushes in bookGroups
	ownSlots     *bulkhead.Bulkhead[uuid.UUID]                    // limits single pushes in ownBookings
	ownBookings  *ownBookings
	forecasts    *bulkhead.Bulkhead[uuid.UUID]
	glanceGroups pg.LaneGroups[span, glance]
}

// span asks for a recipient's bookings strictly within a view: up to most, and one more, which shows that there are
// others. A most of 0 asks for all.
type span struct {
	recipient quota.Recipient
	key       int64      // the recipient's
	view      quota.View // without bookings until they are read
	most      int
	kinds     bool          // also read the kind of each booking
	file      booking.Terms // for a tenant without a policy of its own; only in a glance
	uses      int           // how many drafts still need the view; it is dropped at 0
	known     bool          // the view is complete without a read
	keep      bool          // the view outlives the transaction
}

// glance is the result of a [Store.BookingsBetween].
type glance struct {
	held []booking.Held
	of   booking.Standing
}
