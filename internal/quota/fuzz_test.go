package quota

import "testing"

// FuzzReservation holds that only the script's own words say anything: whatever
// else Redis answers, the cache knows nothing and is not filled.
func FuzzReservation(f *testing.F) {
	for _, seed := range []string{"cold", "free", "blocked", "", "Free", "free ", "ERR", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		got := reservation(answer)
		if known := answer == "cold" || answer == "free" || answer == "blocked"; !known && got != (Reservation{}) {
			t.Errorf("%q is %+v", answer, got)
		}
		if got.State != Cold && got.State.String() != answer || got.Fill != (answer == "cold") {
			t.Errorf("%q is %+v", answer, got)
		}
	})
}
