package recipients

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

// The bounds of a portion. Bookings for the same recipients wait while it is stored.
const (
	importLines = 500
	importBytes = 1 << 20
)

// portion has the descriptions that are stored in one transaction.
type portion struct {
	all   []booking.Description // those without a recipient are not stored
	at    map[string]int        // the index of a recipient
	bytes int
}

func newPortion() portion { return portion{at: map[string]int{}} }

// add adds a description to the portions. If a recipient appears again before the first description is stored, only the later one
// counts. A description is stored after a whole portion has followed.
func (x *recipientImport) add(d booking.Description, bytes int) error {
	for _, p := range []*portion{&x.older, &x.waiting} {
		if i, twice := p.at[d.Recipient]; twice {
			p.all[i] = booking.Description{}
			delete(p.at, d.Recipient)
			x.Updated++
		}
	}
	p := &x.waiting
	p.at[d.Recipient] = len(p.all)
	p.all = append(p.all, d)
	if p.bytes += bytes; len(p.all) < importLines && p.bytes < importBytes {
		return nil
	}
	return x.store()
}

// store stores the older portion in one transaction, which holds the locks of these recipients. The waiting portion becomes the older
// one.
func (x *recipientImport) store() error {
	all := make([]booking.Description, 0, len(x.older.at))
	for _, d := range x.older.all {
		if d.Recipient != "" {
			all = append(all, d)
		}
	}
	if len(all) > 0 {
		if x.entry.ID == uuid.Nil {
			var err error
			if x.entry, err = x.svc.BeginImport(x.in.Context, x.c.Caller.Tenant); err != nil {
				return err
			}
		}
		described, err := x.svc.Describe(x.in.Context, x.c.Caller.Tenant, all)
		if err != nil {
			return err
		}
		for i := range described {
			if described[i].Created {
				x.Created++
			} else {
				x.Updated++
			}
			x.Canceled += described[i].Pushes
		}
	}
	x.older, x.waiting = x.waiting, newPortion()
	return nil
}

// logTime is the time to record the result of an import in the audit log.
const logTime = 5 * time.Second

// logged records the counts of stored recipients in the audit log, also after an error.
func (x *recipientImport) logged() {
	if x.entry.ID == uuid.Nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.in.Context), logTime)
	defer cancel()
	if err := x.svc.EndImport(ctx, x.c.Caller.Tenant, x.entry, x.Created, x.Updated, x.Canceled); err != nil {
		x.c.Logger().WarnContext(ctx, "could not record the counts of an import in the audit log", "request_id", x.c.Writer.RequestID, "error", err)
	}
}
