package clienttest

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestClient_Channels reads the state of a channel that the worker uses.
func TestClient_Channels(t *testing.T) {
	t.Parallel()
	api := newClient()
	testenv.Until(t, 10*time.Millisecond, "the worker reports its channel", func() bool {
		r, err := api.Channels.List(t.Context())
		if err != nil || len(r.Channels) == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		c := r.Channels[0]
		return c.State == client.ChannelStateWorking && !c.AsOf.IsZero() && c.Default && r.Complete
	})
}
