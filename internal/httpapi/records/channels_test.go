package records

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/channelhealth"
)

// TestChannel_Every: a push takes the time of one unit of the speed; a text, of as many as the texts of the last minute.
func TestChannel_Every(t *testing.T) {
	t.Parallel()
	ten := Channel{Rate: 10, Per: time.Second, Unit: "messages"}
	texts := Channel{Rate: 10, Per: time.Second, Unit: "segments"}
	for i, row := range []struct {
		channel  Channel
		segments float64
		want     time.Duration
	}{{Channel{}, 3, 0}, {ten, 3, 100 * time.Millisecond}, {texts, 0, 100 * time.Millisecond}, {texts, 2.5, 250 * time.Millisecond}} {
		if got := row.channel.every(&channelhealth.Health{Segments: row.segments}); got != row.want {
			t.Errorf("%d: %s, want %s", i, got, row.want)
		}
	}
}
