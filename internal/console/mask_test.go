package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

// TestPage_Masked: a role that is not to see addresses does not.
func TestPage_Masked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, err := b.api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "user-1", To: "+4512345678", Message: client.Message{"title": "Hello"}, SendAt: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b.get("/console/pushes/"+one.ID).has(t, 200, "+4512345678")
	b.who.Caller.Masked, b.who.Caller.Scopes = true, []string{push.ScopeRead}
	page := b.get("/console/pushes/" + one.ID)
	page.has(t, 200, "+4•••78")
	if strings.Contains(page.Body, "4512345678") {
		t.Error("the page shows the address")
	}
}
