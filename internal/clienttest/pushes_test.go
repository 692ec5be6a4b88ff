package clienttest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
)

// TestClient_MoveAndRetry: a question moves and books nothing, and a push that has not failed is not retried.
func TestClient_MoveAndRetry(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient()
	at := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	p, err := c.Pushes.Submit(ctx, "", client.NewPush{Recipient: uuid.NewString(), SendAt: at, Message: map[string]any{"body": "Hello."}})
	if err != nil {
		t.Fatal(err)
	}
	later := at.Add(time.Hour)
	would, err := c.Pushes.ValidateReschedule(ctx, p.ID, client.NewTime{SendAt: later})
	if err != nil || !would.SendAt.Equal(later) {
		t.Errorf("%+v, %v", would, err)
	}
	if is, err := c.Pushes.Get(ctx, p.ID); err != nil || !is.SendAt.Equal(at) {
		t.Errorf("it was moved to %s: %v", is.SendAt, err)
	}
	for name, retry := range map[string]func() (client.Push, error){
		"retry": func() (client.Push, error) {
			return c.Pushes.Retry(ctx, "", p.ID, client.NewRetry{OnConflict: client.NewRetryOnConflictDefer})
		},
		"validate": func() (client.Push, error) { return c.Pushes.ValidateRetry(ctx, p.ID, client.NewRetry{}) },
	} {
		_, err := retry()
		if state, ok := errors.AsType[*client.PushState](err); !ok || state.Name() != "not-retryable" || state.Push.ID != p.ID {
			t.Errorf("%s: %v", name, err)
		}
	}
}
