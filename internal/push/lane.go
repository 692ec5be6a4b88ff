package push

import (
	"fmt"
	"time"
)

// Lane is a range of shards, both ends included, that one worker at a time serves.
type Lane struct{ First, Last int }

// Lanes divides all shards into n lanes of equal size, in order. n is a power of two up to [Shards].
func Lanes(n int) []Lane {
	if n < 1 || n > Shards || n&(n-1) != 0 {
		panic(fmt.Sprintf("push: %d lanes", n))
	}
	lanes, size := make([]Lane, n), Shards/n
	for i := range lanes {
		lanes[i] = Lane{First: i * size, Last: (i+1)*size - 1}
	}
	return lanes
}

// LaneOf returns the lane of a recipient. lanes are as returned by [Lanes].
func LaneOf(lanes []Lane, recipientKey int64) Lane {
	return lanes[Shard(recipientKey)*len(lanes)/Shards]
}

// String returns the range of shards, such as 64-127.
func (l Lane) String() string { return fmt.Sprintf("%d-%d", l.First, l.Last) }

// CountedLane is a lane, and until when its due pushes were counted; zero: they were not.
type CountedLane struct {
	Lane
	Until time.Time
}

// Ahead is the forecast of due pushes in a lane.
type Ahead struct {
	Now     time.Time            // by Postgres' clock, like all times here
	Until   time.Time            // Moments are complete before it
	Moments []Moment             // sorted by time
	Oldest  map[string]time.Time // by channel: since when its oldest due push has been due
}

// Moment counts the pushes that become due within a tenth of a second.
type Moment struct {
	At     time.Time // its end, when all of them are due
	Pushes int
}
