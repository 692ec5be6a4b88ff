package campaigns

import (
	"context"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/terms"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// planTurn limits the time of one turn of planning. It is not much longer than the longest time for one line.
const planTurn = 50 * time.Millisecond

// planChunk plans lines in turns, because rendering their templates may take long. It returns how many lines it planned,
// at least one, before it reached the limit of time or memory.
func (s *Runs) planChunk(ctx context.Context, o *CampaignChunk, terms booking.Terms, people *terms.People, lines []CampaignDecided) (planned int, err error) {
	began, size := time.Now(), 0
	full := func() bool { return planned > 0 && (size > chunkBytes || time.Since(began) > planTime) }
	for planned < len(lines) && !full() {
		noTurn := s.db.Cfg.Computing.Do(ctx, o.Campaign.Tenant, func() error {
			for turn := time.Now(); planned < len(lines) && !full() && time.Since(turn) < planTurn; planned++ {
				size += planLine(o, terms, people, &lines[planned])
			}
			return nil
		})
		if noTurn != nil {
			return planned, fmt.Errorf("%w: %w", push.ErrUnavailable, noTurn)
		}
	}
	return planned, nil
}

// planLine plans the draft of a line, and returns the size of its message in bytes.
func planLine(o *CampaignChunk, terms booking.Terms, people *terms.People, d *CampaignDecided) int {
	if d.Erased {
		return 0
	}
	who := quota.Recipient{Tenant: o.Campaign.Tenant, ID: d.Line.Recipient}
	draft, err := o.Plan(d.Line, booking.Standing{Terms: terms, Person: people.Found[who]}, people.Attributes[who])
	if err != nil {
		d.Invalid = err.Error()
		return 0
	}
	draft.Push.Bulk = true // other due pushes are sent before a campaign's
	draft.Far = draft.Far || o.far[d.Line.Recipient]
	d.Draft = draft
	return len(draft.Push.Message) + len(draft.Push.Rendering)
}
