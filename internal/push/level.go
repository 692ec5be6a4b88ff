package push

// Level is a service level: it decides which of the pushes that wait for a busy channel leave first. It follows from
// the push's category. The zero value is [Normal].
type Level int8

// The service levels.
const (
	Urgent Level = iota - 1 // such as one-time passwords
	Normal
	Bulk // such as newsletters
)

// Levels lists the service levels, the most urgent first.
var Levels = [...]Level{Urgent, Normal, Bulk}

var levelNames = [...]string{"urgent", "normal", "bulk"}

// String returns the level's name, as policies and the API have it.
func (l Level) String() string { return levelNames[l.Index()] }

// Index returns the position of the level in [Levels].
func (l Level) Index() int { return int(l - Urgent) }

// ParseLevel returns the level of that name, and whether there is one.
func ParseLevel(name string) (Level, bool) {
	for i, n := range levelNames {
		if n == name {
			return Levels[i], true
		}
	}
	return Normal, false
}

// Rank is the position of a waiting push in the order of a lane: two for each level, of which the second is for bursts.
// See [Push.Rank].
type Rank int16

// Ranks is the number of ranks, which begin at 0.
const Ranks Rank = 2 * Rank(len(Levels))

// Level returns the level of the ranks.
func (r Rank) Level() Level { return Levels[r/2] }

// Burst reports whether the rank is that of a burst.
func (r Rank) Burst() bool { return r%2 == 1 }

// Rank returns the rank of the push.
func (p *Push) Rank() Rank { return RankOf(p.Level, p.Burst) }

// RankOf returns the rank of pushes of a level, in a burst or not.
func RankOf(l Level, burst bool) Rank {
	r := Rank(2 * l.Index())
	if burst {
		r++
	}
	return r
}

// Shares are the parts of a busy channel's speed that the levels get, in the order of [Levels]. Only their ratios
// matter. Each is at least 1.
type Shares [len(Levels)]int

// DefaultShares are the shares of a channel that names none.
var DefaultShares = Shares{70, 20, 10}
