package campaign

import (
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// places is how far the recipients of a campaign were gone through: lane by lane.
type places struct {
	lanes []push.Lane // that are left
	after store.CampaignPlace
}

func newPlaces(lanes []push.Lane) places {
	return places{lanes: lanes, after: store.BeforeShards(lanes[0])}
}

// next is where the next recipients are. It is false if there is nothing left to go through.
func (p *places) next() (shards push.Lane, after store.CampaignPlace, ok bool) {
	if len(p.lanes) == 0 {
		return shards, after, false
	}
	return p.lanes[0], p.after, true
}

// pass notes that those up to a place were gone through, and whether there may be more in their lane.
func (p *places) pass(to store.CampaignPlace, more bool) {
	if p.after = to; more {
		return
	}
	if p.lanes = p.lanes[1:]; len(p.lanes) > 0 {
		p.after = store.BeforeShards(p.lanes[0])
	}
}

// skip leaves out the lanes before the one of a shard, or all if nobody is left.
func (p *places) skip(shard int, found bool) {
	for len(p.lanes) > 0 && (!found || p.lanes[0].Last < shard) {
		p.lanes = p.lanes[1:]
	}
	if len(p.lanes) > 0 && p.after.Shard < p.lanes[0].First-1 {
		p.after = store.BeforeShards(p.lanes[0])
	}
}
