package httpapi

import (
	"testing"
	"time"
)

// TestPauses_Counts checks that /v1/channels and /v1/status count the due pushes that a pause holds apart from those that wait, and that the
// channels that it stops as a whole are paused, with its end and its id, until it ends.
func TestPauses_Counts(t *testing.T) {
	b := setup(t)
	b.freeze()
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	for _, recipient := range []string{"anna", "bert", "carl"} {
		b.send("POST", "/v1/pushes", `{"recipient":"`+recipient+`","channel":"push","message":{}}`).must(t, 201)
	}
	b.send("POST", "/v1/pushes", `{"recipient":"dora","channel":"sms","to":"+15550100","message":{"text":"x"}}`).must(t, 201)
	made := b.send("POST", "/v1/pauses", `{"scope":"channel","name":"push","until":"`+until+`"}`).must(t, 201)
	b.exec(`UPDATE live SET next_at = now() - interval '1 second', send_at = now() - interval '1 second'`)
	b.exec(`UPDATE live SET next_at = 'infinity', pause_id = $1::uuid WHERE channel = 'push'`, made.at(t, "id").(string))
	b.advance(time.Second)

	got := b.send("GET", "/v1/channels", "").must(t, 200)
	for i, want := range []map[string]any{
		{"name": "push", "state": "paused", "until": until, "pause_id": made.at(t, "id"), "waiting": 0.0, "paused": 3.0},
		{"name": "sms", "until": nil, "pause_id": nil, "waiting": 1.0, "paused": 0.0},
	} {
		for member, value := range want {
			if is := got.at(t, "channels", i, member); is != value {
				t.Errorf("channel %d: %s is %v, want %v", i, member, is, value)
			}
		}
	}
	if n := got.at(t, "channels", 0, "levels", 1, "paused"); n != 3.0 {
		t.Errorf("the level normal has %v", n)
	}
	status := b.send("GET", "/v1/status", "").must(t, 200)
	if status.at(t, "waiting", "pushes") != 1.0 || status.at(t, "waiting", "paused") != 3.0 || status.at(t, "channels", 0, "state") != "paused" {
		t.Errorf("the status is %s", status.text)
	}
	theirs := b.send("GET", "/v1/channels", "", "Authorization", "Bearer "+b.other).must(t, 200)
	if theirs.at(t, "channels", 0, "state") == "paused" || theirs.at(t, "channels", 0, "paused") != 0.0 || theirs.at(t, "channels", 0, "pause_id") != nil {
		t.Errorf("another tenant sees %s", theirs.text)
	}

	b.send("POST", "/v1/pauses", `{"scope":"category","name":"news"}`).must(t, 201)
	b.send("DELETE", "/v1/pauses/"+made.at(t, "id").(string), "").must(t, 204)
	b.advance(time.Second)
	if got := b.send("GET", "/v1/channels", "").must(t, 200); got.at(t, "channels", 0, "state") == "paused" || got.at(t, "channels", 0, "pause_id") != nil {
		t.Errorf("a pause of a category stops %s", got.text)
	}
}
