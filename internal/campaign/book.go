package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

// chunkStore decides the recipients of campaigns.
type chunkStore interface {
	CampaignLanes() []push.Lane
	CampaignChunk(ctx context.Context, part campaigns.Part) (*campaigns.Chunk, context.Context)
	NextUndecided(ctx context.Context, c broadcast.Campaign, after campaigns.Position) (shard int, found bool, err error)
	EndCampaignStart(ctx context.Context, id uuid.UUID) (ended bool, err error)
}

// After each chunk, pause for 1/yieldShare of the time that it took, so that single submits get through.
const yieldShare = 3

// book books a chunk.
func (r *runner) book(ctx context.Context, c *campaigns.Running, of *progress, part campaigns.Part) error {
	if of.planner == nil {
		of.planner = r.planner(ctx, c.Campaign)
	}
	began := time.Now()
	done, err := r.chunk(ctx, c, Chunk{
		Part: part, File: r.cfg.Policy, Now: c.StartedAt, Computing: r.cfg.Computing, Plan: of.planner.Plan,
	})
	if err != nil || done.Status != broadcast.Starting {
		return err
	}
	of.cursor.pass(done.Next, done.More)
	select {
	case <-ctx.Done():
	case <-time.After(time.Since(began) / yieldShare):
	}
	return nil
}

// planner returns the planner of a campaign. The template was parsed when the campaign was drafted. If it cannot be
// parsed any more, every line is invalid.
func (r *runner) planner(ctx context.Context, c broadcast.Campaign) *Planner {
	t, err := r.cfg.Parse(&c)
	if err != nil {
		r.log.ErrorContext(ctx, "could not parse campaign message; its recipients become invalid", "campaign", c.ID, "error", err)
		t = unreadable{err}
	}
	return NewPlanner(r.pushes, c, t, c.StartedAt)
}

// unreadable is a template that cannot be rendered.
type unreadable struct{ err error }

// Render returns the error.
func (u unreadable) Render(map[string]any, func() time.Time) (json.RawMessage, error) {
	return nil, u.err
}

// chunk books a chunk under the tenant's caps, and follows up on its decisions. If a push moves to a day whose
// recipients were not counted, it tries again.
func (r *runner) chunk(ctx context.Context, c *campaigns.Running, o Chunk) (done Done, err error) {
	var (
		room   *schedule.Room
		others []booking.Day
	)
	o.Room = func(ctx context.Context, drafts []booking.Draft) (*booking.CapUsage, error) {
		room.Settle(nil) // of an earlier run; this run finds what that one has booked
		room, err = r.pushes.Reserve(ctx, c.Tenant, c.Caps, drafts, others)
		return room.Usage(), err
	}
	for {
		done, err = o.Decide(ctx, r.store.CampaignChunk)
		uncounted, ok := errors.AsType[*UncountedError](err)
		if !ok {
			break
		}
		others = append(others, uncounted.Day)
	}
	if err != nil {
		room.Doubt()
		return done, err
	}
	failpoint.Hit(failpoint.ChunkCommitted)
	decisions := make([]booking.Decision, 0, len(done.Decided))
	for i := range done.Decided {
		d := &done.Decided[i]
		if d.Erased || d.Invalid != "" {
			continue
		}
		decisions = append(decisions, d.Decision)
		r.pushes.Follow(&d.Draft, &d.Decision)
	}
	room.Settle(decisions)
	return done, nil
}
