package upkeep

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// resumeStore ends pauses and continues with the pushes that they have parked.
type resumeStore interface {
	EndPauses(ctx context.Context) ([]pause.Pause, error)
	Unpark(ctx context.Context) (due []booking.Unparked, more bool, err error)
	ExpirePaused(ctx context.Context) (ended []booking.Ended, more bool, err error)
}

// parkStore parks due pushes that a pause covers.
type parkStore interface {
	ParkDue(ctx context.Context, pause uuid.UUID, near []int64) (parked int, more bool, err error)
}

// Parker parks the due pushes of pauses in portions. Claims would park each of them, too, but one by one, and while they do,
// others wait.
type Parker struct {
	store parkStore
	log   *slog.Logger

	mu    sync.Mutex
	asked map[uuid.UUID]map[int64]bool // by pause: the shards of recipients whose pushes claims have parked
}

// parkInterval is the shortest time between two looks at a pause that has little to park.
const parkInterval = time.Second / 4

// NewParker returns a Parker. Every worker runs one; what one has locked, the others skip.
func NewParker(st parkStore, log *slog.Logger) *Parker {
	return &Parker{store: st, log: log, asked: map[uuid.UUID]map[int64]bool{}}
}

// Ask reports that a claim has parked a recipient's push: others of its pause may be due. It does not wait.
func (p *Parker) Ask(pause uuid.UUID, recipientKey int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked[pause] == nil {
		p.asked[pause] = map[int64]bool{}
	}
	p.asked[pause][int64(push.Shard(recipientKey))] = true
}

// Run parks what is asked for, until ctx ends.
func (p *Parker) Run(ctx context.Context) error {
	return loop.Loop{Name: "park", Interval: parkInterval, Log: p.log, Pass: p.pass}.Run(ctx)
}

// pass parks a portion of each pause. It is full while there is more.
func (p *Parker) pass(ctx context.Context) (full bool, err error) {
	p.mu.Lock()
	asked := p.asked
	p.asked = map[uuid.UUID]map[int64]bool{}
	p.mu.Unlock()
	for pause, shards := range asked {
		near := slices.Collect(maps.Keys(shards)) // a shard is the key of a recipient in it
		_, more, err := p.store.ParkDue(ctx, pause, near)
		if err != nil {
			return false, err
		}
		for _, key := range near {
			if more {
				p.Ask(pause, key)
			}
		}
		full = full || more
	}
	return full, nil
}

// NewResumer returns a loop that ends pauses whose time is over, makes the parked pushes of ended pauses due again, and ends
// parked pushes that have expired. Every worker runs one; what one has locked, the others skip. expired receives the number
// of pushes that each pass ended.
func NewResumer(st resumeStore, cache *quota.Cache, wakes waker, log *slog.Logger, expired func(pushes int)) loop.Loop {
	return loop.Loop{Name: "resume", Interval: time.Second / 4, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		over, err := st.EndPauses(ctx)
		for _, p := range over {
			log.InfoContext(ctx, "pause ended: its time is over", "tenant", p.Tenant, "pause", p.ID, "scope", p.Scope)
		}
		if err != nil {
			return false, err
		}
		due, more, err := st.Unpark(ctx)
		if len(due) > 0 {
			failpoint.Hit(failpoint.PauseUnparked)
		}
		for _, d := range due {
			wakes.Wake(d.RecipientKey, d.At, d.In)
		}
		if err != nil {
			return false, err
		}
		ended, late, err := st.ExpirePaused(ctx)
		for _, p := range ended {
			cache.Release(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, quota.Booking{ID: p.ID, Kind: p.Kind})
			log.InfoContext(ctx, "push expired while sending was paused", "push", p.ID, "request_id", p.RequestID)
		}
		expired(len(ended))
		return more || late, err
	}}
}
