package console

import (
	"testing"
	"time"
)

// TestForms_SentTwice: a form that is sent twice is answered twice with what it has done, and does it once. One that was changed in
// between says that it was sent before, and can be sent again.
func TestForms_SentTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	form := b.get("/console/pushes/new")
	for path, fields := range map[string][]string{
		"/console/pushes/new":        {"once", hidden(t, form, "once"), "zone", "UTC", "recipient", "anna", "channel", "push", "message.title", "Hello", "send_at", local(at), "do", "submit"},
		"/console/settings/channels": {"once", "test", "recipient", "bert", "channel", "push"},
	} {
		first := b.post(path, fields...)
		second := b.post(path, fields...)
		if first.Status != 303 || second.Header.Get("Location") != first.Header.Get("Location") {
			t.Errorf("%s: first %d %s, then %d %s\n%s", path, first.Status, first.Header.Get("Location"), second.Status, second.Header.Get("Location"), second.text())
		}
	}
	later := []string{"zone", "UTC", "recipient", "anna", "channel", "push", "message.title", "Hello", "send_at", local(at.Add(time.Hour)), "do", "submit", "once"}
	changed := b.post("/console/pushes/new", append(later, hidden(t, form, "once"))...)
	changed.has(t, 422, "This form was already sent with other values", `value="Hello"`)
	b.follow(b.post("/console/pushes/new", append(later, hidden(t, changed, "once"))...)).has(t, 200, "Scheduled for")
}
