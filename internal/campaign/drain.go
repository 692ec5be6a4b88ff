package campaign

import (
	"maps"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// drain estimates when the accepted pushes of a simulation leave a channel of a limited speed, as if nothing else were
// sent through it.
type drain struct {
	every   time.Duration // the time that the speed allows for a push; 0: any number may leave at once
	arrives map[arrival]int
}

// arrival is a second in which pushes become due, and how long they may wait.
type arrival struct {
	second int64 // Unix
	wait   time.Duration
}

// add notes an accepted push.
func (d *drain) add(p *push.Push) {
	if d.arrives == nil {
		d.arrives = map[arrival]int{}
	}
	d.arrives[arrival{p.SendAt.Unix(), p.ExpiresAt.Sub(p.SendAt)}]++
}

// end returns when the last push has left, zero if none does, and how many expire before they can leave.
func (d *drain) end() (last time.Time, expire int) {
	order := slices.SortedFunc(maps.Keys(d.arrives), func(a, b arrival) int {
		if a.second != b.second {
			return int(a.second - b.second)
		}
		return int(a.wait - b.wait)
	})
	var free time.Time // when the channel is free again
	for _, a := range order {
		due, n := time.Unix(a.second, 0).UTC(), d.arrives[a]
		begin := due
		if free.After(begin) {
			begin = free
		}
		leave := n
		if d.every > 0 {
			// Those leave that begin before they expire.
			left := due.Add(a.wait).Sub(begin)
			leave = min(n, max(0, int((left+d.every-1)/d.every)))
		}
		if expire += n - leave; leave == 0 {
			continue
		}
		free = begin.Add(time.Duration(leave) * d.every)
		last = begin.Add(time.Duration(leave-1) * d.every)
	}
	return last, expire
}
