package campaign

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// drain estimates when the accepted pushes of a simulation leave a channel of a limited speed, as if nothing else were
// sent through it.
type drain struct {
	every     time.Duration // the time that the speed allows for a push; 0: any number may leave at once
	segmented bool          // every is the time for each segment of a text
	arrives   map[arrival]int
}

// arrival is a second when pushes become due, how long they may wait, and how many times every each takes.
type arrival struct {
	second int64 // Unix
	wait   time.Duration
	takes  int
}

// add notes an accepted push, and the segments of its text; 0: it is no text message.
func (d *drain) add(p *push.Push, segments int) {
	if d.arrives == nil {
		d.arrives = map[arrival]int{}
	}
	takes := 1
	if d.segmented {
		takes = max(segments, 1)
	}
	d.arrives[arrival{p.SendAt.Unix(), p.ExpiresAt.Sub(p.SendAt), takes}]++
}

// end returns when the last push has left, zero if none does, and how many expire before they can leave.
func (d *drain) end() (last time.Time, expire int) {
	order := slices.SortedFunc(maps.Keys(d.arrives), func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.second, b.second), cmp.Compare(a.wait, b.wait), cmp.Compare(a.takes, b.takes))
	})
	var free time.Time // when the channel is free again
	for _, a := range order {
		due, n := time.Unix(a.second, 0).UTC(), d.arrives[a]
		begin := due
		if free.After(begin) {
			begin = free
		}
		leave, every := n, time.Duration(a.takes)*d.every
		if every > 0 {
			// Those leave that begin before they expire.
			left := due.Add(a.wait).Sub(begin)
			leave = min(n, max(0, int((left+every-1)/every)))
		}
		if expire += n - leave; leave == 0 {
			continue
		}
		free = begin.Add(time.Duration(leave) * every)
		last = begin.Add(time.Duration(leave-1) * every)
	}
	return last, expire
}
