package campaign

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// drain estimates when the accepted pushes of a simulation leave a channel of a limited speed: after what waits for it now, if nothing
// else comes.
type drain struct {
	every     time.Duration               // the time that the speed allows for a push; 0: any number may leave at once
	segmented bool                        // every is the time for each segment of a text
	free      [len(push.Levels)]time.Time // when the channel has sent what waits for it now of each level; zero: nothing waits
	level     push.Level                  // of the pushes
	arrives   map[arrival]*arrivals
}

// arrival is a second when pushes become due, and how long they may wait.
type arrival struct {
	second int64 // Unix
	wait   time.Duration
}

// arrivals counts pushes. They leave in any order, so each is taken to be as long as their mean.
type arrivals struct {
	pushes int
	takes  int // the sum of how many times every they take
}

// add notes an accepted push, and the segments of its text; 0: it is no text message.
func (d *drain) add(p *push.Push, segments int) {
	if d.arrives == nil {
		d.arrives = map[arrival]*arrivals{}
	}
	d.level = p.Level
	at := arrival{p.SendAt.Unix(), p.ExpiresAt.Sub(p.SendAt)}
	if d.arrives[at] == nil {
		d.arrives[at] = &arrivals{}
	}
	d.arrives[at].pushes++
	if d.segmented {
		d.arrives[at].takes += max(segments, 1)
	} else {
		d.arrives[at].takes++
	}
}

// end returns when the last push has left, zero if none does, and how many expire before they can leave.
func (d *drain) end() (last time.Time, expire int) {
	order := slices.SortedFunc(maps.Keys(d.arrives), func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.second, b.second), cmp.Compare(a.wait, b.wait))
	})
	var free time.Time
	if d.every > 0 {
		free = d.free[d.level.Index()]
	}
	for _, a := range order {
		due, of := time.Unix(a.second, 0).UTC(), d.arrives[a]
		begin := due
		if free.After(begin) {
			begin = free
		}
		leave, every := of.pushes, time.Duration(of.takes)*d.every/time.Duration(of.pushes)
		if every > 0 {
			// Those leave that begin before they expire.
			left := due.Add(a.wait).Sub(begin)
			leave = min(of.pushes, max(0, int((left+every-1)/every)))
		}
		if expire += of.pushes - leave; leave == 0 {
			continue
		}
		free = begin.Add(time.Duration(leave) * every)
		last = begin.Add(time.Duration(leave-1) * every)
	}
	return last, expire
}
