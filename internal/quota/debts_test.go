package quota_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestAMissedChangeIsNotBelieved: while Redis does not answer, a booking is
// released and another one moved. Once Redis is back it still knows the old
// ones, and must not refuse or explain anything by them.
func TestAMissedChangeIsNotBelieved(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	l := quota.NewLedger(client(t, server.URL), quota.LedgerConfig{Timeout: 100 * time.Millisecond, Pause: 50 * time.Millisecond})
	policy := per(1, time.Minute)
	anna, bert := anybody(), anybody()
	for _, r := range []quota.Recipient{anna, bert} {
		if res := l.Reserve(r, booking(1, noon), policy); !res.Fill {
			t.Fatalf("%+v", res)
		}
		l.Fill(r, booking(1, noon).ID, []quota.Booking{booking(1, noon)})
		if res := l.Reserve(r, booking(2, noon), policy); res.State != quota.Blocked {
			t.Fatalf("a full place: %+v", res)
		}
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	l.Release(anna, booking(1, noon).ID)
	l.Hold(bert, booking(1, noon.Add(time.Hour)))
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []quota.Recipient{anna, bert} {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			res := l.Reserve(r, booking(2, noon), policy)
			if res.State == quota.Blocked || time.Now().After(deadline) {
				t.Fatalf("what is no longer so still counts: %+v", res)
			}
			if res.Fill {
				break
			}
		}
	}
}
