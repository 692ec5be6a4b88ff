package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// TestPushes_ListAndCancel: the list is filtered by its URL, shows the call that it made, and leads to a push, which can be
// canceled once.
func TestPushes_ListAndCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("user-1", time.Hour+time.Minute)
	b.submit("user-2", time.Hour)
	list := b.get("/console/pushes?recipient=user-1&status=scheduled&tz=utc")
	list.has(t, 200, "/console/pushes/"+one.ID, "in 1 h", "UTC", `curl -sS 'https://api.example.com/v1/pushes?page_size=50&recipient=user-1&status=scheduled'`)
	if strings.Contains(list.Body, "user-2") {
		t.Error("the filter lets another recipient through")
	}
	b.get("/console/pushes/"+one.ID).has(t, 200, "Push for user-1", "Cancel this push")
	b.follow(b.post("/console/pushes/"+one.ID+"/cancel")).has(t, 200, "is canceled, and its place is free", "canceled")
	b.get("/console/pushes/"+one.ID).has(t, 200)
	b.get("/console/pushes?status=nonsense&from=never").has(t, 422, "never", "no time")
	b.get("/console/pushes?status=nonsense").has(t, 422, "status")
	b.get("/console/pushes/"+one.ID[:8]).has(t, 422)
	b.get("/console/nothing").has(t, 404, "leads nowhere")
}

// TestPage_Roles: what a role may not do is not offered, and refused where it is tried.
func TestPage_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("user-1", time.Hour)
	b.who.Caller.Scopes, b.who.Role = []string{push.ScopeRead}, "viewer"
	page := b.get("/console/pushes/" + one.ID)
	page.has(t, 200, "Push for user-1")
	if strings.Contains(page.Body, "Cancel this push") || strings.Contains(page.Body, `"/console/policy"`) {
		t.Error("a viewer is offered more than to look")
	}
	b.post("/console/pushes/"+one.ID+"/cancel").has(t, 403, "your role, viewer", "pushes:write")
	b.who.Role = ""
	if r := b.get("/console/pushes?status=failed"); r.Status != 303 || r.Header.Get("Location") != "/console/sign-in?to=%2Fconsole%2Fpushes%3Fstatus%3Dfailed" {
		t.Errorf("%d %s", r.Status, r.Header)
	}
}
