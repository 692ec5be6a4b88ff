package console

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/console/campaigns"
)

// TestSchedules_Story: a schedule is made by a form, shown in words with its next runs, paused, changed and deleted. A form with
// faults shows all of them, and what was typed.
func TestSchedules_Story(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.get("/console/schedules").has(t, 200, "No recurring sends yet", "New schedule")
	bad := b.post("/console/schedules/new", "cron", "61 9 * * MON", "time_zone", "Europe/Berlni", "push.title", "Good morning", "push.recipient", "")
	bad.has(t, 422, "the minute cannot be 61: it is *, or of 0 to 59", "Europe/Berlin", "push.recipient", `value="Good morning"`)
	b.post("/console/schedules/new", "cron", "0 9 * * MON", "push.more", "{", "until", "never").has(t, 422, "this is not a JSON object", `"never" is not a time`)
	made := b.post("/console/schedules/new", "name", "Digest", "cron", "0 9 * * MON", "time_zone", "Europe/Berlin", "push.recipient", "user-1", "push.title", "Good morning",
		"push.more", `{"data":{"n":1}}`, "push.on_conflict", "defer", "push.category", "news", "once", "one")
	page := b.follow(made)
	page.has(t, 200, "<pre tabindex=\"0\">Good morning</pre>", `{"n":1}`, "<dt>Category</dt><dd>news</dd>", "sent at the next free time")
	page.has(t, 200, "Schedule created", "at 09:00, on Monday", "Europe/Berlin", "Next runs", "No runs yet")
	if n := strings.Count(page.Body, "Mon "); n < campaigns.NextRuns {
		t.Errorf("%d runs are shown", n)
	}
	path, _, _ := strings.Cut(made.Header.Get("Location"), "?")
	b.follow(b.post(path, "do", "pause")).has(t, 200, "Nothing is sent until you resume it", "These runs are skipped unless you resume")
	b.follow(b.post(path, "do", "resume")).has(t, 200, "Schedule resumed")
	b.follow(b.post(path, "do", "change", "name", "Evening", "cron", "0 18 * * *", "time_zone", "Asia/Tokyo", "catch_up", "last", "until", "2099-01-01T00:00")).
		has(t, 200, "at 18:00", "Asia/Tokyo", "send the last one late", "2099-01-01")
	b.post(path, "do", "change", "name", "", "cron", "never", "time_zone", "Asia/Tokyo", "catch_up", "skip", "until", "").
		has(t, 422, "cron", `value="never"`, `name="name" type="text" value=""`, `name="until" type="datetime-local" value=""`, `<option value="last">`)
	b.get("/console/schedules").has(t, 200, "Evening", "at 18:00, Asia/Tokyo")
	b.follow(b.post(path+"/delete")).has(t, 200, "Schedule deleted")
	b.get(path).has(t, 404)
}

// TestSchedules_Members: other members of the message are one JSON object, whose numbers keep their digits.
func TestSchedules_Members(t *testing.T) {
	t.Parallel()
	b := setup(t)
	form := []string{"cron", "0 9 * * MON", "time_zone", "UTC", "push.recipient", "user-1", "push.title", "Good morning", "once", "one"}
	for _, none := range []string{"null", "[1]", "7", `"x"`, `{"a":1}}`, `{"a":1} {"b":2}`} {
		b.post("/console/schedules/new", append(form, "push.more", none)...).has(t, 422, `id="fault-push.message"`, ">"+none+"<")
	}
	made := b.post("/console/schedules/new", append(form, "push.more", `{"data":{"id":12345678901234567890,"share":0.10}}`)...)
	b.follow(made).has(t, 200, "Schedule created", `"id":12345678901234567890`, `"share":0.10`)
}

// TestSchedules_ChangedInBetween does not let a form undo the change of another user.
func TestSchedules_ChangedInBetween(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.post("/console/schedules/new", "cron", "0 9 * * MON", "time_zone", "UTC", "push.recipient", "user-1", "push.title", "Good morning", "once", "one")
	path, _, _ := strings.Cut(made.Header.Get("Location"), "?")
	seen := hidden(t, b.get(path), "updated_at")
	form := []string{"do", "change", "name", "Mine", "cron", "0 9 * * MON", "time_zone", "UTC", "catch_up", "skip"}
	b.follow(b.post(path, "do", "change", "name", "Theirs", "cron", "0 10 * * TUE", "time_zone", "UTC", "catch_up", "skip", "updated_at", seen)).has(t, 200, "Theirs", "at 10:00, on Tuesday")
	b.post(path, append(form, "updated_at", seen)...).has(t, 412, "Changed in the meantime", "Another user changed this", `value="Mine"`, "at 10:00, on Tuesday")
	b.get(path).has(t, 200, "Schedule Theirs", "at 10:00, on Tuesday")
	b.follow(b.post(path, append(form, "updated_at", hidden(t, b.get(path), "updated_at"))...)).has(t, 200, "Schedule Mine")
}
