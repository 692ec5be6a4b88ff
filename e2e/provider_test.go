package e2e

import (
	"encoding/json"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// wanted treats a request as its message wants: "do" names a behaviour, for the
// first "times" attempts if that is given.
func wanted(a *testenv.Arrival) {
	var m struct {
		Do    string
		Times int
	}
	_ = json.Unmarshal(a.Message, &m)
	if m.Times == 0 || a.Attempt <= m.Times {
		a.Does = m.Do
	}
}

// once wants every push to have been taken exactly once.
func once(t *testing.T, all []testenv.Arrival, want int) {
	t.Helper()
	seen := map[string]int{}
	for _, one := range all {
		seen[one.Push]++
		if one.Key != one.Push || !one.Signed {
			t.Errorf("push %s came with key %q, signed %v", one.Push, one.Key, one.Signed)
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("push %s was taken %d times", id, n)
		}
	}
	if len(seen) != want {
		t.Errorf("%d pushes were taken, want %d", len(seen), want)
	}
}
