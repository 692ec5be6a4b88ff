package console

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestSegments_Schedule shows the size of a text in the form of a schedule, creates nothing then, and keeps what was typed.
func TestSegments_Schedule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	text := strings.Repeat("a", 159) + "😀"
	fields := []string{"zone", "UTC", "name", "Weekly", "cron", "0 9 * * MON", "push.recipient", "anna", "push.body", text, "once", "a-key"}
	b.get("/console/schedules/new").has(t, 200, "Check text")
	page := b.post("/console/schedules/new", append(fields, "push.channel", "sms", "do", "check")...)
	page.has(t, 200, "As it is written here, the text has 3 segments, UCS-2, because of “😀”. Nothing was created yet.", text, `value="Weekly"`, `value="a-key"`)
	b.post("/console/schedules/new", append(fields, "push.channel", "push", "do", "check")...).has(t, 200, "sends no text messages")
	b.post("/console/schedules/new", append(fields, "push.channel", "", "do", "check")...).has(t, 200, "The channel push sends no text messages")
	b.post("/console/schedules/new", append(fields, "push.channel", "smss", "do", "check")...).has(t, 200, "There is no channel smss.")
	b.get("/console/schedules").lacks(t, "Weekly")
	b.follow(b.post("/console/schedules/new", append(fields, "push.channel", "sms", "do", "create")...)).has(t, 200, "Schedule created")
}

// TestSegments_Test shows the size of the text of a test through an own sms channel, of the one that is there and of the one that was typed.
func TestSegments_Test(t *testing.T) {
	t.Parallel()
	b := setup(t)
	settings := client.ChannelSettings{"type": "sms", "account_sid": "AC1", "api_key_sid": "SK1", "api_key_secret": "x", "messaging_service_sid": "MG1", "disabled": true}
	if _, err := b.api.Channels.Put(t.Context(), "texts", settings); err != nil {
		t.Fatal(err)
	}
	b.get("/console/settings/channels/own/texts").has(t, 200, "As it is written here: 1 segment, GSM-7.")
	b.post("/console/settings/channels/own/texts", "do", "test", "to", "", "message.body", strings.Repeat("ы", 71)).has(t, 409, "As it is written here: 2 segments, UCS-2")
	if _, err := b.api.Channels.Put(t.Context(), "hook", client.ChannelSettings{"type": "webhook", "url": "https://example.com/", "disabled": true}); err != nil {
		t.Fatal(err)
	}
	b.get("/console/settings/channels/own/hook").has(t, 200, "Send a test message").lacks(t, "segment")
}
