package campaign

import (
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/campaigns"
)

// cursor is a position among the recipients of a campaign, lane by lane.
type cursor struct {
	lanes []push.Lane // remaining lanes
	after campaigns.Position
}

func newCursor(lanes []push.Lane) cursor {
	return cursor{lanes: lanes, after: campaigns.BeforeShards(lanes[0])}
}

// next returns the position of the next recipients. It is false at the end.
func (p *cursor) next() (shards push.Lane, after campaigns.Position, ok bool) {
	if len(p.lanes) == 0 {
		return shards, after, false
	}
	return p.lanes[0], p.after, true
}

// pass moves to a position. more reports whether its lane may have more recipients.
func (p *cursor) pass(to campaigns.Position, more bool) {
	if p.after = to; more {
		return
	}
	if p.lanes = p.lanes[1:]; len(p.lanes) > 0 {
		p.after = campaigns.BeforeShards(p.lanes[0])
	}
}

// skip skips the lanes before the lane of a shard, or all if no recipient was found.
func (p *cursor) skip(shard int, found bool) {
	for len(p.lanes) > 0 && (!found || p.lanes[0].Last < shard) {
		p.lanes = p.lanes[1:]
	}
	if len(p.lanes) > 0 && p.after.Shard < p.lanes[0].First-1 {
		p.after = campaigns.BeforeShards(p.lanes[0])
	}
}
