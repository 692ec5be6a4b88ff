package calendar

import "testing"

// TestPercentOf: nothing and all are said of nothing and all alone.
func TestPercentOf(t *testing.T) {
	t.Parallel()
	for _, row := range [][3]int64{{0, 0, 0}, {0, 7, 0}, {1, 1000, 1}, {2, 3, 67}, {999, 1000, 99}, {7, 7, 100}} {
		if got := percentOf(row[0], row[1]); got != row[2] {
			t.Errorf("%d of %d are %d %%, want %d", row[0], row[1], got, row[2])
		}
	}
}
