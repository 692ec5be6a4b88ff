package httpapi

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestPush_Campaign: what is shown of a push of a campaign names the campaign, everywhere; and the lists find it by that.
func TestPush_Campaign(t *testing.T) {
	b := setupAlone(t)
	testenv.Forge(t, b.url)
	campaign := uuid.NewString()
	b.send("POST", "/v1/webhooks", `{"url":"https://example.com/h","events":["push.sent"]}`).must(t, 201)
	id := b.send("POST", "/v1/pushes", pushBody("aiko", b.in(0), "")).must(t, 201).at(t, "id").(string)
	other := b.send("POST", "/v1/pushes", pushBody("bert", b.in(time.Hour), "")).must(t, 201)
	if other.at(t, "campaign") != nil {
		t.Error(other.text)
	}
	b.exec(`UPDATE pushes SET campaign_id = '` + campaign + `' WHERE id = '` + id + `'; UPDATE live SET campaign_id = '` + campaign + `' WHERE push_id = '` + id + `'`)
	b.attempt("aiko", booking.Finish{Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}})

	if got := b.send("GET", "/v1/pushes/"+id, "").must(t, 200); got.at(t, "campaign") != campaign {
		t.Error(got.text)
	}
	for query, want := range map[string]int{"": 2, "?campaign=" + campaign: 1, "?status=scheduled&campaign=" + campaign: 0, "?campaign=" + uuid.NewString(): 0} {
		if got := b.send("GET", "/v1/pushes"+query, "").must(t, 200); len(got.at(t, "pushes").([]any)) != want {
			t.Errorf("%s finds not %d: %s", query, want, got.text)
		}
	}
	if got := b.send("GET", "/v1/sends?campaign="+campaign, "").must(t, 200); len(got.at(t, "sends").([]any)) != 1 {
		t.Error(got.text)
	}
	_, line := b.kinds("aiko", "", 3)
	for _, e := range line.at(t, "entries").([]any) {
		if e.(map[string]any)["campaign"] != campaign {
			t.Errorf("%v", e)
		}
	}
	if got := query[string](b, `SELECT payload->'data'->>'campaign' FROM webhook_deliveries WHERE event = 'push.sent'`); got != campaign {
		t.Errorf("the event has the campaign %q", got)
	}
	if got := b.groups("?group_by=campaign", "sent"); got != `"" 0, "`+campaign+`" 1` {
		t.Error(got)
	}
}
