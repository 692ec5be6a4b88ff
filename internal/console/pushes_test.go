package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
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
	b.get("/console/pushes/"+one.ID).has(t, 200, "Message for user-1", "Cancel message")
	b.follow(b.post("/console/pushes/"+one.ID+"/cancel")).has(t, 200, "is canceled and no longer counts towards limits", "canceled")
	b.get("/console/pushes/"+one.ID).has(t, 200)
	b.get("/console/pushes?status=nonsense&from=never").has(t, 422, "never", "not a time")
	b.get("/console/pushes?status=nonsense").has(t, 422, "status")
	b.get("/console/pushes/"+one.ID[:8]).has(t, 404, "No such message")
	b.get("/console/nothing").has(t, 404, "There is no page at")
}

// TestPage_Roles: what a role may not do is not offered, and refused where it is tried.
func TestPage_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("user-1", time.Hour)
	b.who.Caller.Scopes, b.who.Role = []string{push.ScopeRead}, "viewer"
	page := b.get("/console/pushes/" + one.ID)
	page.has(t, 200, "Message for user-1")
	if strings.Contains(page.Body, "Cancel message") || strings.Contains(page.Body, `"/console/policy"`) {
		t.Error("a viewer is offered more than to look")
	}
	b.post("/console/pushes/"+one.ID+"/cancel").has(t, 403, "Your role, viewer", "cannot do this")
	b.who.Role = ""
	if r := b.get("/console/pushes?status=failed"); r.Status != 303 || r.Header.Get("Location") != "/console/sign-in?to=%2Fconsole%2Fpushes%3Fstatus%3Dfailed" {
		t.Errorf("%d %s", r.Status, r.Header)
	}
}

// local is a time as a browser writes it, in UTC.
func local(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// TestPush_Submit previews a form, then books it once. Faults appear at their fields, and the input is kept.
func TestPush_Submit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.get("/console/pushes").has(t, 200, "Send a message")
	b.get("/console/pushes/new").has(t, 200, `<option>push</option>`)
	b.post("/console/pushes/new", "recipient", "", "message.title", "Hello", "send_at", "yesterday", "category", "sale").has(t, 422, "fault-send_at", "fault-recipient", `value="Hello"`, `value="sale"`)
	at := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	fields := []string{"recipient", "user-1", "channel", "push", "message.title", "Hello", "send_at", local(at), "once", "one-key", "do"}
	b.post("/console/pushes/new", append(fields, "check")...).has(t, 200, "It would be scheduled for", "Nothing was scheduled yet")
	b.get("/console/pushes?recipient=user-1").has(t, 200, "No message matches")
	b.follow(b.post("/console/pushes/new", append(fields, "submit")...)).has(t, 200, "Scheduled for "+at.UTC().Format("2006-01-02 15:04:05"), "Message for user-1", "History", "booked")
	fields[9] = "another-key"
	free := at.Add(time.Minute).UTC()
	b.post("/console/pushes/new", append(fields, "submit")...).has(t, 409, "Send quota exceeded", "per-minute", "The next free time is", `name="next_free" value="`+frame.RFC3339(free)+`"`)
	b.post("/console/pushes/new", append(fields, "", "next_free", frame.RFC3339(free))...).has(t, 200, "It would be scheduled for", "Nothing was scheduled yet",
		`name="send_at" type="datetime-local" value="`+local(free)+`"`, `name="send_at_exact" value="`+frame.RFC3339(free)+`"`, `value="Hello"`)
	b.post("/console/pushes/new", append(fields, "submit", "message", "null")...).has(t, 422, "fault-message", `value="Hello"`)
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get("/console/pushes/new").has(t, 403, "cannot do this")
}

// TestPush_Move says first whether a time is free, and moves only when told to.
func TestPush_Move(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, other := b.submit("user-1", time.Hour), b.submit("user-1", 2*time.Hour)
	to := one.SendAt.Add(30 * time.Minute)
	path := "/console/pushes/" + one.ID + "/move"
	b.post(path, "move_to", local(to), "do", "check").has(t, 200, "It can be moved to", "Nothing was moved yet", `value="`+local(to)+`"`)
	free := other.SendAt.Add(time.Minute)
	taken := b.post(path, "move_to", local(other.SendAt.Add(30*time.Second)), "do", "check")
	if taken.has(t, 409, "Send quota exceeded", "The next free time is", `value="`+frame.RFC3339(free)+`"`); strings.Contains(taken.Body, "It can be moved") {
		t.Error("what is refused can be moved")
	}
	b.post(path, "move_to", local(other.SendAt.Add(30*time.Second)), "next_free", frame.RFC3339(free)).has(t, 200, "It can be moved to", "Nothing was moved yet", `value="`+local(free)+`"`)
	b.post(path, "move_to", "2020-01-01T09:00", "do", "check").has(t, 422, "fault-move_to", "in the past", `value="2020-01-01T09:00"`)
	b.post(path, "move_to", local(other.SendAt.Add(30*time.Second)), "do", "move").has(t, 409, "Send quota exceeded")
	b.post(path, "move_to", "never", "do", "move").has(t, 422, "fault-move_to")
	if now, err := b.api.Pushes.Get(t.Context(), one.ID); err != nil || !now.SendAt.Equal(one.SendAt) {
		t.Fatalf("it was moved: %+v, %v", now, err)
	}
	b.follow(b.post(path, "move_to", local(to), "do", "move")).has(t, 200, "is moved to "+to.UTC().Format("2006-01-02 15:04:05"))
	b.get(path).has(t, 200, "Message for user-1")
}

// TestPush_Zones shows and reads times in the recipient's zone if it is chosen: the own zone, or else the zone of the policy.
func TestPush_Zones(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.api.Recipients.Put(t.Context(), "user-1", client.NewRecipient{TimeZone: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	one, path := b.submit("user-1", time.Hour), "/console/pushes/"
	shown := func(at time.Time) string { return at.In(tokyo).Format("2006-01-02 15:04:05") }
	typed := func(at time.Time) string { return at.In(tokyo).Format("2006-01-02T15:04:05") }
	b.get(path+one.ID).has(t, 200, "Recipient’s: Asia/Tokyo", "Mine: UTC", one.SendAt.UTC().Format("2006-01-02 15:04:05"))
	b.get(path+one.ID+"?tz=recipient").has(t, 200, shown(one.SendAt), "Time zone: Asia/Tokyo")
	to := one.SendAt.Add(3 * time.Hour).Truncate(time.Second)
	b.post(path+one.ID+"/move?tz=recipient", "move_to", typed(to), "do", "check").has(t, 200, "It can be moved to <time datetime=\""+frame.RFC3339(to)+"\">"+shown(to))
	b.follow(b.post(path+one.ID+"/move?tz=recipient", "move_to", typed(to), "do", "move")).has(t, 200, "is moved to "+shown(to)+" Asia/Tokyo (+09:00), in ")
	failed := b.failed("user-1", "the provider answered 404")
	again := to.Add(time.Hour)
	b.follow(b.post(path+failed.ID+"/retry?tz=recipient", "retry_at", typed(again), "do", "retry")).has(t, 200, "scheduled for "+shown(again)+" Asia/Tokyo (+09:00)")

	b.get("/console/pushes?recipient=user-1&tz=recipient&from="+typed(to)+"&until="+typed(to.Add(time.Second))).has(t, 200, shown(to), "/console/pushes/"+one.ID)
	b.get("/console/pushes?recipient=nobody").has(t, 200, "Recipient’s: UTC") // of the policy
}

// TestPushes_BulkOfTheSame: a change of all is offered only where it has the filter of the list.
func TestPushes_BulkOfTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for query, want := range map[string]bool{
		"": true, "status=scheduled": true, "recipient=user-1&campaign=&reason=": true,
		"status=failed": false, "reason=x": false, "status=scheduled&reason=x": false, "from=never": false,
	} {
		if got := strings.Contains(b.get("/console/pushes?"+query).Body, "Cancel or reschedule messages"); got != want {
			t.Errorf("%q: %v", query, got)
		}
	}
}

// TestPush_Retry says first what a retry would do, and books it once.
func TestPush_Retry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.failed("user-1", "the provider answered 404")
	b.get("/console/pushes/"+one.ID).has(t, 200, "Retry", "the provider answered 404")
	path := "/console/pushes/" + one.ID + "/retry"
	b.post(path, "do", "check").has(t, 200, "The retry would be scheduled for", "Nothing was scheduled yet")
	b.follow(b.post(path, "do", "retry")).has(t, 200, "This is the retry", "Retry of", one.ID)
	b.post(path, "do", "check").has(t, 200, "It was retried before")
	b.post("/console/pushes/"+b.failed("user-2", "the provider answered 404").ID+"/retry", "do", "check", "retry_at", "2020-01-01T09:00").has(t, 422, "fault-retry_at", "in the past", `value="2020-01-01T09:00"`)
	b.post(path, "do", "check", "retry_at", "never", "expires_at", "later").has(t, 422, "fault-retry_at", "fault-expires_at")
	until := time.Now().Add(3 * time.Hour).Truncate(time.Second).UTC()
	other := b.failed("user-3", "the provider answered 404").ID
	b.follow(b.post("/console/pushes/"+other+"/retry?tz=utc", "do", "retry", "expires_at", until.Format("2006-01-02T15:04:05"))).has(t, 200, "This is the retry", until.Format("2006-01-02 15:04:05"))
}

// failed is a push that has failed for a reason.
func (b *bundle) failed(recipient, reason string) client.Push {
	b.t.Helper()
	one := b.submit(recipient, time.Minute)
	testenv.Exec(b.t, b.url, `DELETE FROM live WHERE push_id = $1`, one.ID)
	testenv.Exec(b.t, b.url, `UPDATE pushes SET status = 'failed', last_error = $2, freed = true WHERE id = $1`, one.ID, reason)
	return one
}

// TestPushes_FilterFaults: all that is wrong with the filter of a list is said at once, whoever finds it, and nothing is listed.
func TestPushes_FilterFaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("anna", time.Hour)
	page := b.get("/console/pushes?from=zz&status=bogus&until=yy")
	page.has(t, 422, `id="fault-from"`, `id="fault-until"`, `id="fault-status"`, `value="zz"`)
	if strings.Contains(page.Body, one.ID) {
		t.Error("a list is shown without a query")
	}
	b.get("/console/pushes?from=zz").has(t, 422, `id="fault-from"`)
	b.get("/console/failures?from=zz&campaign=yy").has(t, 422, `id="fault-from"`, `id="fault-campaign"`)
	b.get("/console/proof/log?from=zz&actor_type=yy").has(t, 422, `id="fault-from"`, `id="fault-actor_type"`)
	b.get("/console/proof/log/export?from=zz").has(t, 422, "is not a time")
}
