package console

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/people"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// linkOf finds the address of a link by its text.
func linkOf(t *testing.T, r reply, text string) string {
	t.Helper()
	m := regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>` + regexp.QuoteMeta(text)).FindStringSubmatch(r.Body)
	if m == nil {
		t.Fatalf("there is no link %q in\n%s", text, r.Body)
	}
	return m[1]
}

// bookHour fills an hour of a recipient by the default rules: five sends from a time on, two minutes apart.
func (b *bundle) bookHour(recipient string, at time.Time) (all []client.Push) {
	b.t.Helper()
	for i := range 5 {
		one, err := b.api.Pushes.Submit(b.t.Context(), "", client.NewPush{
			Recipient: recipient, Category: "news", Message: client.Message{"title": "Number " + frame.Number(i+1)}, SendAt: at.Add(time.Duration(2*i) * time.Minute),
		})
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// noon is twelve o'clock of the day after tomorrow.
func noon() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(60 * time.Hour) }

// TestRecipient_Axis shows free times, and the rule and sends in the way at the cursor. Its links lead to the neighbouring periods.
func TestRecipient_Axis(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := b.bookHour("user/1 & co", noon())
	path := "/console/recipients/" + url.PathEscape("user/1 & co")
	r := b.get(path + "?tz=utc&scale=day&at=" + frame.RFC3339(noon()) + "&cursor=" + frame.RFC3339(noon().Add(30*time.Minute)))
	r.has(t, 200, "<h1>user/1 & co</h1>", "not free", "<strong>per-hour</strong>", "“Number 1”", "“Number 5”", "/console/pushes/"+all[4].ID,
		`<svg class="axis"`, "No profile is stored", `curl -sS 'https://api.example.com/v1/recipients/user%2F1%20&%20co/availability?`, "As a table")
	for text, want := range map[string]time.Time{"Next free": noon().Add(time.Hour), "Previous free": noon().Add(8*time.Minute - time.Hour)} {
		to, err := url.Parse(linkOf(t, r, text))
		if err != nil || to.Query().Get("cursor") != frame.RFC3339(want) {
			t.Errorf("%s leads to %s, want %s", text, to, want)
		}
		b.get(to.String()).has(t, 200, "A message of this kind can be sent here.")
	}
	for _, scale := range []string{"hour", "6h", "week", "month", "nonsense"} {
		b.get(path+"?tz=utc&scale="+scale+"&at="+frame.RFC3339(noon())).has(t, 200, "Number 3")
	}
	b.get(path+"?tz=utc&scale=hour&at="+frame.RFC3339(noon().Add(10*time.Minute))).has(t, 200, "No free time here.")
	if later := linkOf(t, r, "Later"); !strings.Contains(later, url.QueryEscape(frame.RFC3339(noon().Add(12*time.Hour)))) {
		t.Errorf("later is %s", later)
	}
}

// TestRecipient_Zones shows the axis and its forms in the chosen zone, also on the day of a clock change.
func TestRecipient_Zones(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.api.Recipients.Put(t.Context(), "user-1", client.NewRecipient{TimeZone: "Europe/Berlin", Addresses: map[string]string{"sms": "+4912345"}}); err != nil {
		t.Fatal(err)
	}
	year := time.Now().Year()
	sunday := time.Date(year, 10, 31, 0, 0, 0, 0, time.UTC)
	for sunday.Weekday() != time.Sunday {
		sunday = sunday.AddDate(0, 0, -1)
	}
	if sunday.Before(time.Now()) { // next year's
		sunday = time.Date(year+1, 10, 31, 0, 0, 0, 0, time.UTC)
		for sunday.Weekday() != time.Sunday {
			sunday = sunday.AddDate(0, 0, -1)
		}
	}
	r := b.get("/console/recipients/user-1?tz=recipient&scale=6h&cursor=" + frame.RFC3339(sunday.Add(90*time.Minute)))
	r.has(t, 200, "clocks back 1 h", "02:00 +02:00", "02:00 +01:00", "02:30:00 <span class=\"zone\">Europe/Berlin (+01:00)", "sms: +4912345", "Recipient’s: Europe/Berlin")
	done := b.post("/console/recipients/user-1/submit?tz=recipient", "send_at", sunday.Format("2006-01-02")+"T02:30", "send_at_exact", frame.RFC3339(sunday.Add(90*time.Minute)), "channel", "push", "message.title", "Hi")
	b.follow(done).has(t, 200, "Scheduled for "+sunday.Format("2006-01-02")+" 02:30:00 Europe/Berlin (+01:00)")
	for one, err := range b.api.Pushes.List(t.Context(), client.PushesOptions{Recipient: "user-1"}) {
		if err != nil || !one.SendAt.Equal(sunday.Add(90*time.Minute)) {
			t.Errorf("booked at %s, want the second half past two; %v", one.SendAt, err)
		}
	}
	done = b.post("/console/recipients/user-1/submit?tz=recipient", "send_at", sunday.Format("2006-01-02")+"T02:30", "send_at_exact", frame.RFC3339(sunday.Add(30*time.Minute)), "channel", "push", "message.title", "Hi")
	b.follow(done).has(t, 200, "Scheduled for "+sunday.Format("2006-01-02")+" 02:30:00 Europe/Berlin (+02:00)")
}

// TestRecipient_Submit keeps the input of a refused form, books nothing on a check, and books a valid form once.
func TestRecipient_Submit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.bookHour("user-1", noon())
	path, blocked, free := "/console/recipients/user-1/submit?tz=utc&scale=day", noon().Add(30*time.Minute).Format("2006-01-02T15:04:05"), noon().Add(2*time.Hour).Format("2006-01-02T15:04:05")
	b.post(path, "send_at", blocked, "message.title", "Typed & kept", "channel", "push").has(t, 409, "Typed & kept", "The rule per-hour is full: 5 in any 1 h", `value="`+blocked+`"`, "“Number 5”")
	b.post(path, "send_at", "tomorrow", "message", "{", "channel", "push", "message.body", "Kept").has(t, 422, "is not a time", "not a JSON object", `value="tomorrow"`, `value="Kept"`)
	b.post(path, "send_at", "2020-01-01T09:00", "channel", "push", "message.title", "x").has(t, 422, "must not be more than a minute in the past", `id="fault-send_at"`)
	b.post(path, "send_at", free, "do", "check", "channel", "push", "message.title", "x").has(t, 200, "It would be scheduled for", "Nothing was scheduled yet.")
	b.post(path, "send_at", blocked, "do", "check", "on_conflict", "defer", "channel", "push", "message.title", "x").has(t, 200, "It would be scheduled for "+noon().Add(time.Hour).Format("2006-01-02 15:04:05"))
	for range 2 {
		b.follow(b.post(path, "send_at", free, "once", "one-form", "do", "submit", "channel", "push", "message.title", "x")).has(t, 200, "Scheduled for", noon().Add(2*time.Hour).Format("2006-01-02 15:04:05"))
	}
	n := 0
	for range b.api.Pushes.List(t.Context(), client.PushesOptions{Recipient: "user-1"}) {
		n++
	}
	if n != 6 {
		t.Errorf("%d pushes, want 6", n)
	}
	if r := b.get(path); r.Status != 303 || r.Header.Get("Location") != "/console/recipients/user-1?scale=day&tz=utc" {
		t.Errorf("the address of the form leads to %d %s", r.Status, r.Header.Get("Location"))
	}
}

// TestRecipient_WrongKind: what is wrong with what the axis is about stands at its field, beside the axis of all.
func TestRecipient_WrongKind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("x", 65)
	page := b.get("/console/recipients/anna?category=" + long)
	page.has(t, 422, "This cannot be shown.", `name="category" value="`+long+`" aria-invalid="true"`, `id="fault-kind-category"`, "<time-axis")
	if n := strings.Count(page.Body, `id="fault-kind-category"`); n != 1 {
		t.Errorf("the fault is shown %d times", n)
	}
}

// TestRecipient_Move: the axis of a move leaves the push itself out; a move to where there is no place moves nothing.
func TestRecipient_Move(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := b.bookHour("user-1", noon())
	b.submit("user-2", time.Hour)
	r := b.get("/console/recipients/user-1?tz=utc&at=" + frame.RFC3339(noon()))
	move := linkOf(t, r, `Move<span class="hidden"> message `+all[2].ID)
	b.get(move).has(t, 200, "Choose a new time", "The message can be moved here.", "<button>Move</button>")
	b.get(move+"&cursor="+frame.RFC3339(noon().Add(2*time.Minute))).has(t, 200, "not free", "<strong>per-minute</strong>", "Number 2")
	path := strings.Replace(move, "/user-1?", "/user-1/move?", 1)
	b.post(path, "move_to", noon().Add(2*time.Minute+30*time.Second).Format("2006-01-02T15:04:05")).has(t, 409, "per-minute", "Choose a new time")
	b.post(path, "move_to", "later").has(t, 422, "is not a time", `id="fault-move_to"`)
	if one, err := b.api.Pushes.Get(t.Context(), all[2].ID); err != nil || !one.SendAt.Equal(all[2].SendAt) {
		t.Fatalf("moved to %s, %v", one.SendAt, err)
	}
	b.follow(b.post(path, "move_to", noon().Add(3*time.Hour).Format("2006-01-02T15:04:05"))).has(t, 200, "Moved to "+noon().Add(3*time.Hour).Format("2006-01-02 15:04:05"))
	if one, err := b.api.Pushes.Get(t.Context(), all[2].ID); err != nil || !one.SendAt.Equal(noon().Add(3*time.Hour)) {
		t.Errorf("moved to %s, %v", one.SendAt, err)
	}
	b.get("/console/recipients/user-2?move="+all[2].ID).has(t, 404, "is not one of user-2")
}

// TestRecipient_Cancel: what a cancel would leave free is shown before.
func TestRecipient_Cancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := b.bookHour("user-1", noon())
	r := b.get("/console/recipients/user-1?tz=utc&at=" + frame.RFC3339(noon()))
	cancel := linkOf(t, r, `Cancel<span class="hidden"> message `+all[4].ID)
	// Without the fifth, four are left: what is free then is all but a minute around each.
	b.get(cancel).has(t, 200, "These times become free", "from "+`<time datetime="`+frame.RFC3339(noon().Add(7*time.Minute))+`"`, "Becomes free")
	b.follow(b.post(strings.Replace(cancel, "/user-1?", "/user-1/cancel?", 1))).has(t, 200, "is canceled and no longer counts towards limits", "status-canceled")
	b.post(strings.Replace(cancel, "/user-1?", "/user-1/cancel?", 1)).has(t, 303)
}

// TestRecipient_FreeWithout: the script of the axis learns where a push could be dragged.
func TestRecipient_FreeWithout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := b.bookHour("user-1", noon())
	r := b.get("/console/recipients/user-1/free?without=" + all[2].ID + "&from=" + frame.RFC3339(noon()) + "&until=" + frame.RFC3339(noon().Add(10*time.Minute)))
	var found struct {
		Free  [][2]int64
		Rules []people.AxisRule
	}
	if err := json.Unmarshal([]byte(r.Body), &found); err != nil || r.Status != 200 {
		t.Fatal(r.Status, err)
	}
	if start := noon().Unix(); len(found.Free) != 4 || found.Free[1] != [2]int64{start + 180, start + 301} || len(found.Rules) != 3 {
		t.Errorf("%+v", found)
	}
}

// TestRecipients_Search leads to any recipient, and lists those that are known.
func TestRecipients_Search(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.api.Recipients.Put(t.Context(), "user-1", client.NewRecipient{OptOuts: &client.NewOptOuts{Categories: []string{"news"}}}); err != nil {
		t.Fatal(err)
	}
	b.get("/console/recipients").has(t, 200, "/console/recipients/user-1", "news")
	b.follow(b.get("/console/recipients?id=some%2Fbody&tz=utc")).has(t, 200, "<h1>some/body</h1>")
	b.get("/console/recipients?page_token=nonsense").has(t, 422)
	b.get("/console/recipients/user-1?category=news").has(t, 200, "has opted out of these messages", "category news")
}

// TestRecipient_Roles: a viewer may look, and is offered nothing else; one who may not read pushes sees how many there are.
func TestRecipient_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.bookHour("user-1", noon())[0]
	b.who.Caller.Scopes, b.who.Role = []string{push.ScopeQuota, push.ScopeRead}, "viewer"
	r := b.get("/console/recipients/user-1?at=" + frame.RFC3339(noon()))
	r.has(t, 200, "Number 1")
	for _, offered := range []string{">Send<", "Move<", "Cancel<", "data-push"} {
		if strings.Contains(r.Body, offered) {
			t.Errorf("a viewer is offered %q", offered)
		}
	}
	for _, form := range []string{"submit", "move", "cancel"} {
		b.post("/console/recipients/user-1/"+form+"?move="+one.ID+"&cancel="+one.ID).has(t, 403, "cannot do this")
	}
	b.who.Caller.Scopes = []string{push.ScopeQuota}
	b.get("/console/recipients/user-1?at="+frame.RFC3339(noon())).has(t, 200, "5 are scheduled here", "mark-scheduled")
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get("/console/recipients/user-1").has(t, 403)
}

// TestRecipient_Sent: what was sent, and each attempt, stand on the axis and in tables.
func TestRecipient_Sent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("user-1", -10*time.Second) // due now, whatever it is rounded to
	claim, err := b.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, "user-1"), Lease: time.Minute})
	if err != nil || claim.Outcome != booking.Claimed {
		t.Fatalf("%+v, %v", claim, err)
	}
	done := booking.Finish{Attempt: claim.Attempted(), Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}}
	if _, err := b.store.Finish(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	b.get("/console/recipients/user-1?scale=6h").has(t, 200, "mark-sent", "mark-delivered", "Attempts in this period", "delivered", "/console/pushes/"+one.ID)
}

// TestRecipient_ManyAttempts shows a notice about attempts that the axis leaves out, with a link to them.
func TestRecipient_ManyAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("user-1", time.Minute)
	from := noon().AddDate(0, 0, -3)
	testenv.Exec(t, b.url, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, shard, recipient, channel, send_at, started_at, lease_until, ended_at, outcome)
		SELECT id, g, tenant_id, recipient_key, shard, recipient, channel, send_at, $2::timestamptz + g * interval '1 second', $2::timestamptz + g * interval '1 second', $2::timestamptz + g * interval '1 second', 'unknown'
		FROM pushes, generate_series(1, 502) g WHERE id = $1`, one.ID, from)
	path := "/console/recipients/user-1?tz=utc&scale=day&at="
	page := b.get(path + frame.RFC3339(from))
	last := from.Add(500 * time.Second)
	page.has(t, 200, "Only the first 500 attempts in this period are shown, until", last.UTC().Format("2006-01-02 15:04:05"))
	rest, err := url.Parse(linkOf(t, page, "Continue from there on a shorter axis"))
	if err != nil || rest.Query().Get("scale") != "6h" || rest.Query().Get("at") != frame.RFC3339(last) {
		t.Errorf("it goes on at %s, %v", rest, err)
	}
	if r := b.get(path + frame.RFC3339(from.AddDate(0, 0, 1))); strings.Contains(r.Body, "Only the first") {
		t.Error("an axis without attempts reports left-out ones")
	}
}
