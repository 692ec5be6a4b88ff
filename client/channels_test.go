package client_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// TestClient_Channels tells of a channel through which the worker sends.
func TestClient_Channels(t *testing.T) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := newClient().Channels(t.Context())
		if err != nil || len(r.Channels) == 0 || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", r, err)
		}
		if r.Channels[0].State == client.ChannelStateWorking && !r.Channels[0].AsOf.IsZero() && r.Channels[0].Default && r.Complete {
			return
		}
	}
}
