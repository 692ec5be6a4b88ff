package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestLateness_Quantile checks that quantiles are at most 2 % off the sorted times, also for sums of histograms.
func TestLateness_Quantile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 100, 5000} {
		var (
			times  []float64
			whole  = Lateness{}
			stored []byte
		)
		for range n {
			late := time.Duration(math.Exp(random.Float64()*20) * float64(time.Millisecond)) // up to 5 days
			times = append(times, float64(late)/float64(time.Millisecond))
			part := Lateness{bucketOf(late): 1}
			if random.IntN(2) == 0 {
				whole.Add(part)
				continue
			}
			sum := Lateness{}
			sum.AddBytes(stored)
			sum.Add(part)
			stored = sum.Bytes()
		}
		whole.AddBytes(stored)
		slices.Sort(times)
		for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			want := times[max(int(math.Ceil(q*float64(n))), 1)-1]
			if got := whole.Quantile(q); math.Abs(got-want) > 0.02*want {
				t.Errorf("the %g of %d times is %g, want %g", q, n, got, want)
			}
		}
	}
}

// bucketOf returns the bucket of a time, as the store computes it.
func bucketOf(late time.Duration) int16 {
	return int16(math.Ceil(math.Log(float64(late)/float64(time.Millisecond)) / math.Log(LatenessGrowth)))
}

// TestLateness_Edges checks that punctual pushes give 0, and an empty histogram gives 0.
func TestLateness_Edges(t *testing.T) {
	if got := (Lateness{0: 5}).Quantile(0.99); got != 0 {
		t.Error(got)
	}
	if got := (Lateness{}).Quantile(0.5); got != 0 {
		t.Error(got)
	}
	Lateness{}.AddBytes([]byte{255}) // a truncated histogram adds nothing
}
