package schedule

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// standings caches the standings of a batch's recipients. The first request for one reads all of them: first those
// whose zone is needed, then those whose address may be.
type standings struct {
	toRead [][]string // ids
	read   map[string]booking.Standing
	err    error

	rendered   []string                   // ids of recipients of templates
	attributes map[string]json.RawMessage // attributes of the recipients in rendered, once read
}

// standingsOf returns the unread standings of the recipients of requests.
func standingsOf(all iter.Seq[*Request]) *standings {
	var zones, addresses, rendered []string
	for r := range all {
		if r.Template {
			rendered = append(rendered, r.Recipient)
		}
		if !r.LocalTime.IsZero() && r.TimeZone == "" {
			zones = append(zones, r.Recipient)
		} else if r.To == "" || r.Template {
			addresses = append(addresses, r.Recipient)
		}
	}
	return &standings{toRead: [][]string{zones, addresses}, read: map[string]booking.Standing{}, rendered: rendered}
}

// standing returns a recipient's standing. Without known, it reads this one alone.
func (pl *Planner) standing(ctx context.Context, who quota.Recipient, known *standings) (booking.Standing, error) {
	if known != nil {
		if of, ok := pl.among(ctx, who, known); ok || known.err != nil {
			return of, known.err
		}
	}
	return pl.store.Standing(ctx, who, pl.cfg.Policy)
}

// among returns a recipient's standing from the standings of a batch, and reads more of them until it is found.
func (pl *Planner) among(ctx context.Context, who quota.Recipient, known *standings) (of booking.Standing, ok bool) {
	for {
		if of, ok = known.read[who.ID]; ok || known.err != nil || len(known.toRead) == 0 {
			return of, ok
		}
		ids := known.toRead[0]
		known.toRead = known.toRead[1:]
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) > 0 {
			known.err = pl.readStandings(ctx, who.Tenant, ids, known.read)
		}
	}
}

func (pl *Planner) readStandings(ctx context.Context, tenant uuid.UUID, ids []string, into map[string]booking.Standing) error {
	terms, people, err := pl.store.Standings(ctx, tenant, ids, pl.cfg.Policy)
	if err != nil {
		return err
	}
	for _, id := range ids {
		into[id] = booking.Standing{Terms: terms, Person: people[id]}
	}
	return nil
}
