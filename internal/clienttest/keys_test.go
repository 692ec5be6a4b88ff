package clienttest

import (
	"errors"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// TestClient_Keys makes, rotates and revokes a key.
func TestClient_Keys(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient()
	first, err := c.Keys.Create(ctx, client.NewKey{Name: "web", Scopes: []client.NewKeyScopes{client.NewKeyScopesKeysRead}, ExpiresAt: time.Now().Add(time.Hour)})
	if err != nil || first.Secret == "" || first.ExpiresAt.IsZero() {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := c.Keys.Rotate(ctx, first.ID, client.KeyRotation{Overlap: "0s"})
	if err != nil || second.Secret == first.Secret || second.Name != "web" {
		t.Fatalf("%+v, %v", second, err)
	}
	if err := errors.Join(c.Keys.Revoke(ctx, second.ID, client.RevokeKeyOptions{}), c.Keys.Revoke(ctx, second.ID, client.RevokeKeyOptions{})); err != nil {
		t.Error(err)
	}
	states := map[string]client.KeyState{}
	for k, err := range c.Keys.List(ctx) {
		if err != nil || k.Secret != "" {
			t.Errorf("%+v, %v", k, err)
		}
		states[k.ID] = k.State
	}
	if states[first.ID] != client.KeyStateExpired || states[second.ID] != client.KeyStateRevoked {
		t.Errorf("%v", states)
	}
	if k, err := c.Keys.Get(ctx, first.ID); err != nil || k.Successor != second.ID {
		t.Errorf("%+v, %v", k, err)
	}
}
