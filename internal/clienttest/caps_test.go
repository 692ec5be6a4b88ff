package clienttest

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// TestClient_Caps reads the usage of caps by a scheduled push and its recipient.
func TestClient_Caps(t *testing.T) {
	t.Parallel()
	c, at := newClient(), time.Now().Add(200*24*time.Hour)
	if _, err := c.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "under-caps", Message: client.Message{"title": "Hello"}, SendAt: at}); err != nil {
		t.Fatal(err)
	}
	caps, err := c.Quota.GetCaps(t.Context(), client.CapsOptions{Day: at})
	if err != nil || caps.PendingPushes.Used == 0 || caps.RecipientsPerDay.Used != 1 || caps.Day != at.UTC().Format(time.DateOnly) || caps.RecipientsPerDay.Limit != 0 {
		t.Errorf("%+v, %v", caps, err)
	}
	if today, err := c.Quota.GetCaps(t.Context(), client.CapsOptions{}); err != nil || today.Day == caps.Day {
		t.Errorf("%+v, %v", today, err)
	}
}
