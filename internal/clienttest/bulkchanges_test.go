package clienttest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestClient_BulkChange moves three pushes to one time with room for two.
func TestClient_BulkChange(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient()
	category, at := uuid.NewString(), time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	anna, bert := uuid.NewString(), uuid.NewString()
	var second client.Push
	for i, who := range []string{anna, anna, bert} {
		p, err := c.Pushes.Submit(ctx, "", client.NewPush{Recipient: who, Category: category, SendAt: at.Add(time.Duration(i) * time.Minute), Message: client.Message{"body": "Hi"}})
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			second = p
		}
	}
	to := at.Add(3 * time.Hour)
	wanted := client.NewBulkChange{Action: client.NewBulkChangeActionMove, SendAt: to, Filter: client.NewBulkFilter{Category: category, From: at, Until: at.Add(time.Hour)}}
	if e, err := c.Pushes.ValidateCreateBulkChange(ctx, wanted); err != nil || e.Found != 3 || e.Sample.Pushes != 3 || e.Sample.Accepted != 3 { // each alone
		t.Errorf("%+v, %v", e, err)
	}
	made, err := c.Pushes.CreateBulkChange(ctx, category, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Pushes.CreateBulkChange(ctx, category, wanted); err != nil || again.ID != made.ID {
		t.Errorf("the same key made %s and %s: %v", made.ID, again.ID, err)
	}
	done := made
	for ; done.EndedAt.IsZero(); testenv.Sleep(t, 20*time.Millisecond) {
		if done, err = c.Pushes.GetBulkChange(ctx, made.ID); err != nil {
			t.Fatal(err)
		}
	}
	if done.Status != client.BulkChangeStatusDone || done.Found != 3 || done.Changed != 2 || done.RefusedByReason["quota-exceeded"] != 1 {
		t.Errorf("%+v", done)
	}
	n := 0
	for one, err := range c.Pushes.ListBulkChangeRefused(ctx, made.ID) {
		if n++; err != nil || one.Push != second.ID || !one.SendAt.Equal(second.SendAt) || one.Reason != "quota-exceeded" || len(one.Rules) != 1 {
			t.Errorf("%+v, %v", one, err)
		}
	}
	if n != 1 {
		t.Errorf("%d are listed as refused", n)
	}
	if still, err := c.Pushes.CancelBulkChange(ctx, made.ID); err != nil || still.Status != client.BulkChangeStatusDone {
		t.Errorf("%+v, %v", still, err)
	}
	listed := 0
	for one, err := range c.Pushes.ListBulkChanges(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if one.ID == made.ID {
			listed++
		}
	}
	if listed != 1 {
		t.Errorf("it is listed %d times", listed)
	}
}
