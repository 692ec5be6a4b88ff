package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
)

// chunkStore decides the recipients of campaigns.
type chunkStore interface {
	CampaignLanes() []push.Lane
	BookCampaignChunk(ctx context.Context, o store.CampaignChunk) (store.CampaignChunkDone, error)
	NextUndecided(ctx context.Context, p push.Campaign, after store.CampaignPlace) (shard int, found bool, err error)
	EndCampaignStart(ctx context.Context, id uuid.UUID) (ended bool, err error)
}

// yieldShare is for which part of the time that a chunk took none is booked behind it: single submits have their turn.
const yieldShare = 3

// book books a chunk, or has the campaign run when all of its recipients are decided.
func (r *runner) book(ctx context.Context, c *store.RunningCampaign, of *progress) (more bool, err error) {
	if err := r.skip(ctx, c, of); err != nil {
		return false, err
	}
	shards, after, ok := of.places.next()
	if !ok {
		of.places = newPlaces(r.store.CampaignLanes()) // another worker may have died meanwhile with a chunk that this one passed
		ended, err := r.store.EndCampaignStart(ctx, c.ID)
		return err == nil && !ended, err
	}
	if of.planner == nil {
		of.planner = r.planner(ctx, c.Campaign)
	}
	began := time.Now()
	done, err := r.chunk(ctx, c, store.CampaignChunk{
		Campaign: c.Campaign, Shards: shards, After: after, File: r.cfg.Policy, Now: c.StartedAt, Plan: of.planner.Plan,
	})
	if err != nil {
		return false, err
	}
	if done.Status != push.CampaignStarting {
		return true, nil
	}
	of.places.pass(done.Next, done.More)
	select {
	case <-ctx.Done():
	case <-time.After(time.Since(began) / yieldShare):
	}
	return true, nil
}

// skip leaves out the lanes without a recipient who is to be decided.
func (r *runner) skip(ctx context.Context, c *store.RunningCampaign, of *progress) error {
	_, after, ok := of.places.next()
	if !ok {
		return nil
	}
	shard, found, err := r.store.NextUndecided(ctx, c.Campaign, after)
	if err == nil {
		of.places.skip(shard, found)
	}
	return err
}

// planner is that of a campaign. The template was parsed when it was drafted; if it cannot be any more, no line can be planned.
func (r *runner) planner(ctx context.Context, c push.Campaign) *Planner {
	t, err := r.cfg.Parse(&c)
	if err != nil {
		r.log.ErrorContext(ctx, "the message of a campaign cannot be read", "campaign", c.ID, "error", err)
		t = unreadable{err}
	}
	return NewPlanner(r.pushes, c, t, c.StartedAt)
}

// unreadable is a template that makes no message.
type unreadable struct{ err error }

// Render returns the error.
func (u unreadable) Render(map[string]any, func() time.Time) (json.RawMessage, error) {
	return nil, u.err
}

// chunk books a chunk under the tenant's caps, and does what follows. If a push moves to a day of which the recipients were not
// counted, it begins again.
func (r *runner) chunk(ctx context.Context, c *store.RunningCampaign, o store.CampaignChunk) (done store.CampaignChunkDone, err error) {
	var (
		room   *schedule.Room
		others []booking.Day
	)
	o.Room = func(ctx context.Context, drafts []booking.Draft) (*booking.CapUsage, error) {
		room.Settle(nil) // of an earlier run, which booked nothing that this one does not find
		room, err = r.pushes.Reserve(ctx, c.Tenant, c.Caps, drafts, others)
		return room.Usage(), err
	}
	for {
		done, err = r.store.BookCampaignChunk(ctx, o)
		uncounted, ok := errors.AsType[*store.UncountedError](err)
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
