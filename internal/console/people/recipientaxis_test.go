package people

import (
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// TestSpansWithout: what some spans have that others do not.
func TestSpansWithout(t *testing.T) {
	t.Parallel()
	spans := func(bounds ...int64) (all []client.Span) {
		for i := 0; i < len(bounds); i += 2 {
			all = append(all, client.Span{From: time.Unix(bounds[i], 0), Until: time.Unix(bounds[i+1], 0)})
		}
		return all
	}
	for _, c := range []struct{ of, others, want []client.Span }{
		{spans(0, 10), nil, spans(0, 10)},
		{nil, spans(0, 10), nil},
		{spans(0, 10), spans(0, 10), nil},
		{spans(0, 10, 20, 30), spans(5, 25), spans(0, 5, 25, 30)},
		{spans(0, 30), spans(-5, 3, 10, 12, 28, 40), spans(3, 10, 12, 28)},
		{spans(0, 10), spans(10, 20), spans(0, 10)},
		{spans(0, 10), spans(-5, 15), nil},
	} {
		if got := spansWithout(c.of, c.others); !slices.Equal(got, c.want) {
			t.Errorf("%v without %v: %v, want %v", c.of, c.others, got, c.want)
		}
	}
}
