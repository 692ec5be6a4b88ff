package pauses_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/webhook"
)

// TestCreatePause_AgainEvents checks that each change of a pause in force writes an event with what it has then, and a repetition none, also
// for the operator's pause; and that of concurrent changes none is lost.
func TestCreatePause_AgainEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hook := b.Hook(t, webhook.EventSendingPaused, webhook.EventSendingResumed)
	events := func() int {
		return storetest.Ask[int](t, b.DB, `SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1 AND event = 'sending.paused'`, hook.ID)
	}
	for _, tenant := range []uuid.UUID{b.TenantID, uuid.Nil} {
		before := events()
		p := pause.Pause{Tenant: tenant, Scope: pause.All, Reason: "one", Until: time.Now().Add(time.Hour)}
		b.pauses(t, p)
		if b.pauses(t, p); events() != before+1 {
			t.Errorf("the same again: %d events, want 1", events()-before)
		}
		p.Reason, p.Until = "two", time.Time{}
		if b.pauses(t, p); events() != before+2 {
			t.Errorf("changed: %d events, want 2", events()-before)
		}
		last := storetest.Ask[string](t, b.DB, `SELECT payload->'data'->>'reason' || coalesce(payload->'data'->>'until', ' without end') FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY seq DESC LIMIT 1`, hook.ID)
		if last != "two without end" {
			t.Errorf("the event has %q", last)
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				one := p
				one.ID, one.Reason = uuid.Must(uuid.NewV7()), fmt.Sprint("of ", i)
				if _, found, err := b.CreatePause(t.Context(), one, pause.Given{Reason: true}); err != nil || !found {
					t.Errorf("%v, found: %v", err, found)
				}
			})
		}
		if all.Wait(); events() != before+10 {
			t.Errorf("eight concurrent changes: %d events, want 10", events()-before)
		}
	}
}
