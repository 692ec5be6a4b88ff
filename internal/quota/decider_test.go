package quota_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// TestDecider_AgreesWithPolicy checks that remembered free times never change a decision.
func TestDecider_AgreesWithPolicy(t *testing.T) {
	t.Parallel()
	remembered := 0
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		now := noon.Add(-span).Add(moments(time.Second).Draw(t, "now").Sub(noon))
		v := quota.View{Timeline: quota.NewTimeline(c.bookings)}
		x := quota.Decider{Policy: c.policy, Now: now}
		for _, at := range rapid.SliceOfN(moments(grain), 10, 40).Draw(t, "asked") {
			want, _ := c.policy.Decide(v, at, now)
			got, complete := x.Decide(v, at)
			if !reflect.DeepEqual(want, got) || !complete {
				t.Fatalf("%v at %s, now %s:\n%s", c, at.Sub(noon), now.Sub(noon), cmp.Diff(want, got))
			}
			if !got.Allowed() && got.Next.Sub(at) > time.Second {
				remembered++
			}
		}
	})
	if remembered < 100 {
		t.Errorf("only %d times were blocked for longer: nothing was tested", remembered)
	}
}
