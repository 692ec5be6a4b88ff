package campaigns

import (
	"testing"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/golden"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	golden.Compare(t, "histogram.svg", string(histogram("How long the <deferred> ones wait", delayBars([]client.Delay{
		{UpToSeconds: 60, Recipients: 3}, {UpToSeconds: 300}, {UpToSeconds: 3600, Recipients: 12345}, {UpToSeconds: 86400, Recipients: 7000}, {Recipients: 1},
	})))+"\n")
}
