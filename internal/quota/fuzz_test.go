package quota

import "testing"

// FuzzCacheAnswer checks that any reply except the script's own ones counts as cold, and does not ask for a Fill.
func FuzzCacheAnswer(f *testing.F) {
	for seed := range int64(6) {
		f.Add(seed-1, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, number int64, more bool) {
		answer := []int64{number}
		if more {
			answer = append(answer, number)
		}
		want := map[int64]CacheAnswer{1: {Fill: true}, 2: {State: Free}, 3: {State: Blocked}}[number]
		if more {
			want = CacheAnswer{}
		}
		if got := cacheAnswer(answer); got != want {
			t.Errorf("%v is %+v", answer, got)
		}
		if got := cacheAnswer(answer[:0]); got != (CacheAnswer{}) {
			t.Errorf("nothing is %+v", got)
		}
	})
}
