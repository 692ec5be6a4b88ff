package pace

import "github.com/sendquota/sendquota/internal/push"

// Demand describes what waits at a worker, and for what it has used its slots since it last asked.
type Demand struct {
	Shares push.Shares
	Waits  [len(push.Levels)]bool // whether the worker has something to send, by level
	Served [len(push.Levels)]int  // pushes sent, by level
}

// MostBehind bounds how far a level may be behind its share, in pushes of the level with the least share. A level that was
// passed over for long must not stop the others when it is served again.
const MostBehind = 10

// Tags order the levels: of the levels where something waits, the one with the least tag comes next. With each push that
// is sent, the tag of its level grows by one over the level's share.
type Tags struct {
	Now   float64 // of the push that was sent last: a level that has had nothing to send continues from there
	Level [len(push.Levels)]float64
}

// tagUnit is the number of integers that one is in the answer of the script, which answers integers only.
const tagUnit = 1e6

func tagsKey(prefix, channel string) string { return prefix + "pace:{" + channel + "}:levels" }

// arguments appends the demand as the script wants it.
func (d Demand) arguments(args []any) []any {
	if d.Shares == (push.Shares{}) { // no levels
		return append(args, 0)
	}
	args = append(args, len(d.Shares), MostBehind)
	for i, share := range d.Shares {
		waits := 0
		if d.Waits[i] {
			waits = 1
		}
		args = append(args, share, d.Served[i], waits)
	}
	return args
}

// tagsOf reads the tags in an answer of the script; nil: it has none.
func tagsOf(answer []int64) *Tags {
	if len(answer) < 1+len(push.Levels) {
		return nil
	}
	t := &Tags{Now: float64(answer[0]) / tagUnit}
	for i := range t.Level {
		t.Level[i] = float64(answer[1+i]) / tagUnit
	}
	return t
}
