package clienttest

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestClient_Status reads the status with a worker and a sent push.
func TestClient_Status(t *testing.T) {
	t.Parallel()
	c := newClient()
	if _, err := c.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "of-the-status", Message: client.Message{"title": "Hello"}}); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, 10*time.Millisecond, "the status includes the attempt", func() bool {
		s, err := c.Records.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Workers > 0 && s.Postgres == client.StatusPostgresOk && s.Attempts.Delivered > 0 && s.Attempts.LateMsP99 > 0 && len(s.Minutes) > 0
	})
}
