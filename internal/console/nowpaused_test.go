package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestNow_Paused shows what is stopped in the first sentence, the number of due messages that a stop holds, and the channels that it stops.
func TestNow_Paused(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	if err := b.store.ReplaceChannelViews(t.Context(), uuid.New(), []channelhealth.View{{Channel: "push", State: channelhealth.Working}, {Channel: "sms", State: channelhealth.Working}}); err != nil {
		t.Fatal(err)
	}
	shows := func(words ...string) {
		t.Helper()
		var page reply
		testenv.Until(t, 100*time.Millisecond, "the page shows "+words[0], func() bool {
			page = b.get("/console/now")
			return strings.Contains(page.Body, words[0])
		})
		page.has(t, 200, words...)
		page.lacks(t, "All systems normal", "Nothing is waiting")
	}
	b.submit("anna", time.Hour)
	b.submit("bert", time.Hour)
	b.post("/console/pauses", "zone", "UTC", "scope", "channel", "channel", "push", "reason", "", "until", "")
	testenv.Exec(t, b.url, `UPDATE live SET send_at = now() - interval '1 second', next_at = 'infinity', pause_id = (SELECT id FROM pauses)`)
	shows("2 are stopped by a pause, and are sent when it ends.", "Sending is stopped: the channel push. Everything else is sending normally.", `<p class="figure">2</p>`,
		"Sending is stopped. Messages that are due wait until it is resumed.", "and 2 stopped", `<span class="status status-paused">paused</span>`)
	b.get("/console/settings/channels").has(t, 200, "and 2 that a stop of sending holds", "Sending is stopped. Messages that are due wait")

	testenv.Exec(t, b.url, `UPDATE live SET next_at = now(), pause_id = NULL WHERE push_id = (SELECT min(push_id::text)::uuid FROM live)`)
	shows("messages are due. 1 is stopped by a pause", "1 is queued. The oldest was due at")
	b.post("/console/pauses", "zone", "UTC", "scope", "all", "reason", "", "until", "")
	shows("Sending is stopped: everything.")
	b.get("/console/now").lacks(t, "Everything else")
}
