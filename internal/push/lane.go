package push

import (
	"fmt"
	"time"
)

// Shards is into how many parts all recipients are divided, for ever.
const Shards = 256

// Shard is the part that a recipient belongs to: 0 to Shards-1.
func Shard(recipientKey int64) int { return int(recipientKey & (Shards - 1)) }

// Lane is a range of shards that one worker at a time looks after. Both ends belong to it.
type Lane struct{ First, Last int }

// Lanes divides all shards into n lanes of the same size, in order. n is a power of two up to [Shards].
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

// LaneOf returns the lane of lanes, as [Lanes] made them, that a recipient belongs to.
func LaneOf(lanes []Lane, recipientKey int64) Lane {
	return lanes[Shard(recipientKey)*len(lanes)/Shards]
}

// String returns the shards, as in 64-127.
func (l Lane) String() string { return fmt.Sprintf("%d-%d", l.First, l.Last) }

// CountedLane is a lane, and until when what becomes due there was counted; zero: it was not.
type CountedLane struct {
	Lane
	Until time.Time
}

// Ahead is what will be due in a lane.
type Ahead struct {
	Now     time.Time            // by Postgres' clock, as all times here
	Until   time.Time            // Moments are complete before it
	Moments []Moment             // by time
	Oldest  map[string]time.Time // by channel: since when the push that is due longest has been due
}

// Moment is a tenth of a second in which pushes become due.
type Moment struct {
	At     time.Time // its end: all of them are due then
	Pushes int
}
