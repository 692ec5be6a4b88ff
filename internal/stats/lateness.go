package stats

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Lateness is a histogram of how late pushes were sent. Histograms can be added up. Each bucket is 4 % wider than the
// one before, so a quantile is at most 2 % wrong. It is a DDSketch: https://www.vldb.org/pvldb/vol12/p2195-masson.pdf
type Lateness map[int16]int64

// LatenessGrowth is the ratio of the upper bounds of a bucket and the one before. The upper bound of bucket 0 is a
// millisecond.
const LatenessGrowth = 1.04

// Add adds a histogram to this one.
func (l Lateness) Add(other Lateness) {
	for bucket, n := range other {
		l[bucket] += n
	}
}

// Quantile returns the lateness, in milliseconds, that a part q of the pushes did not exceed: 0.5 for half of them. It
// is 0 for an empty histogram and for less than a millisecond.
func (l Lateness) Quantile(q float64) float64 {
	var all, below int64
	for _, n := range l {
		all += n
	}
	rank := max(int64(math.Ceil(q*float64(all))), 1)
	for _, bucket := range slices.Sorted(maps.Keys(l)) {
		if below += l[bucket]; below >= rank && bucket > 0 {
			return 2 * math.Pow(LatenessGrowth, float64(bucket)) / (1 + LatenessGrowth)
		} else if below >= rank {
			break
		}
	}
	return 0
}

// Bytes encodes the histogram for Postgres.
func (l Lateness) Bytes() []byte {
	b, last := make([]byte, 0, 3*len(l)), int16(0)
	for _, bucket := range slices.Sorted(maps.Keys(l)) {
		b = binary.AppendUvarint(b, uint64(bucket-last))
		b = binary.AppendUvarint(b, uint64(l[bucket]))
		last = bucket
	}
	return b
}

// AddBytes adds a histogram that [Lateness.Bytes] has encoded.
func (l Lateness) AddBytes(b []byte) {
	bucket := int16(0)
	for len(b) > 0 {
		step, n := binary.Uvarint(b)
		count, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 {
			return
		}
		bucket += int16(step)
		l[bucket] += int64(count)
		b = b[n+m:]
	}
}
