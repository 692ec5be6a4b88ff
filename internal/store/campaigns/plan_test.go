package campaigns_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// TestTryCampaignChunk_Turns checks that the lines of a chunk are planned in the tenant's turns. A slow chunk takes
// several turns, and other callers get theirs in between.
func TestTryCampaignChunk_Turns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.MustCampaign(t, storetest.People(60)...)
	computing := bulkhead.NewComputing(&bulkhead.Neighbours[uuid.UUID]{})
	st := storetest.OpenURL(t, b.URL, pg.Config{Lanes: 4})
	o := storetest.ChunkOf(c, nil)
	o.Shards, o.After = st.CampaignLanes()[0], campaigns.BeforeShards(st.CampaignLanes()[0])
	o.Computing = computing
	plan := o.Plan
	var planned atomic.Int64
	o.Plan = func(line broadcast.AudienceLine, of booking.Standing, a json.RawMessage) (booking.Draft, error) {
		planned.Add(1)
		return plan(line, of, a)
	}

	// Take all turns of the tenant.
	turns, leave := runtime.GOMAXPROCS(0), make(chan struct{})
	defer close(leave)
	last := make(chan struct{})
	for n := range turns {
		in, ends := make(chan struct{}), leave
		if n == turns-1 {
			ends = last
		}
		go func() {
			_ = computing.Do(context.Background(), c.Tenant, func() error { close(in); <-ends; return nil })
		}()
		<-in
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := o.Decide(ctx, st.CampaignTrial); !errors.Is(err, push.ErrUnavailable) && !errors.As(err, new(*bulkhead.FullError)) || planned.Load() > 0 {
		t.Errorf("%v, %d lines were planned", err, planned.Load())
	}

	// With one turn left, another caller that wants it during the planning does not wait for the last line.
	close(last)
	before := make(chan int64, 1)
	o.Plan = func(line broadcast.AudienceLine, of booking.Standing, a json.RawMessage) (booking.Draft, error) {
		if planned.Add(1) == 1 {
			go func() { _ = computing.Do(t.Context(), c.Tenant, func() error { before <- planned.Load(); return nil }) }()
		}
		time.Sleep(60 * time.Millisecond) // planning a line is slow
		return plan(line, of, a)
	}
	done, err := o.Decide(t.Context(), st.CampaignTrial)
	if all := int64(len(done.Decided)); err != nil || all < 2 || <-before >= all {
		t.Errorf("it came after %d lines, %v", all, err)
	}
}
