package recipients

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

// The bounds of what an import stores at once: others who book for the same recipients wait so long.
const (
	importLines = 500
	importBytes = 1 << 20
)

// portion is what is stored at once.
type portion struct {
	all   []booking.Description // without a recipient: it is not stored
	at    map[string]int        // the place of a recipient
	bytes int
}

func newPortion() portion { return portion{at: map[string]int{}} }

// add puts a description among those that are stored. Of a recipient who comes twice before the first is stored, the later one alone
// counts, as if the earlier one had not been there. It is stored when a whole portion has come after it.
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

// store stores the older portion, in one transaction that holds the locks of these recipients; and the one that waits is the older
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

// logTime is how long an import may take to have the audit log tell what it has done, whatever has ended it.
const logTime = 5 * time.Second

// logged has the audit log tell what was stored.
func (x *recipientImport) logged() {
	if x.entry.ID == uuid.Nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.in.Context), logTime)
	defer cancel()
	if err := x.svc.EndImport(ctx, x.c.Caller.Tenant, x.entry, x.Created, x.Updated, x.Canceled); err != nil {
		x.c.Logger().WarnContext(ctx, "the audit log does not tell how many recipients an import has stored", "request_id", x.c.Writer.RequestID, "error", err)
	}
}
