package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTenantChannels_DrainedTexts: texts of five segments wait for a channel of four segments a second. The time when it has sent them, and
// the simulation of a campaign behind them, count segments from the first text on, within a tenth.
func TestTenantChannels_DrainedTexts(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	const texts, segments, rate = 40, 5, 4
	made := b.ask("PUT", "/v1/channels/texts", fmt.Sprintf(`{"type": "sms", "account_sid": "AC1", "auth_token": "secret-token", "from": "+4511111111", "base_url": %q,
		"throughput": {"rate": %d, "per": "1s", "unit": "segments"}}`, b.own.url, rate))
	if made["owner"] != "tenant" {
		t.Fatal(made)
	}
	body := strings.Repeat("a", 4*153+1)
	for i := range texts {
		p := b.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": "r%d", "to": "+45111111%02d", "channel": "texts", "category": "news", "message": {"body": %q}}`, i, i, body))
		if p["id"] == nil {
			t.Fatal(p)
		}
	}
	campaign := b.ask("POST", "/v1/campaigns", fmt.Sprintf(`{"channel": "texts", "category": "news", "expires_after": "1m", "message": {"body": %q}}`, body))
	req, err := http.NewRequestWithContext(t.Context(), "PUT", fmt.Sprint(b.api, "/v1/campaigns/", campaign["id"], "/audience"), strings.NewReader("recipient,to\n"+strings.Join(audienceOf(texts), "\n")))
	testenv.Check(t, err)
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Content-Type", "text/csv")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()

	var drained time.Time
	var waiting float64
	testenv.Until(t, 50*time.Millisecond, "the texts wait", func() bool {
		for _, c := range b.ask("GET", "/v1/channels", "")["channels"].([]any) {
			if c := c.(map[string]any); c["name"] == "texts" {
				level := c["levels"].([]any)[2].(map[string]any)
				waiting, _ = level["waiting"].(float64)
				drained, err = time.Parse(time.RFC3339, fmt.Sprint(level["drained_at"]))
			}
		}
		return waiting > texts/2
	})
	testenv.Check(t, err)
	want := time.Duration(waiting * segments / rate * float64(time.Second))
	if left := time.Until(drained); (left - want).Abs() > want/10+time.Second {
		t.Errorf("%v texts of %d segments are gone in %s, not in %s", waiting, segments, left, want)
	}
	now := time.Now()
	sim := b.ask("POST", fmt.Sprint("/v1/campaigns/", campaign["id"], "/simulate"), "")
	finishes, err := time.Parse(time.RFC3339, fmt.Sprint(sim["finishes_at"]))
	testenv.Check(t, err)
	// Those that have left meanwhile make it sooner by the time that they took.
	ends := drained.Sub(now)
	fit := int((time.Minute - ends).Seconds() * rate / segments)
	if expire, _ := sim["would_expire"].(float64); finishes.Sub(now) < ends || (int(expire)-(texts-fit) > 4 || (texts-fit)-int(expire) > 4) {
		t.Errorf("the channel is drained in %s; a campaign behind it ends in %s, and %v of %d expire, want %d", ends, finishes.Sub(now), sim["would_expire"], texts, texts-fit)
	}
}

// audienceOf returns lines of an audience of people with telephone numbers.
func audienceOf(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("c%d,+45222222%02d", i, i))
	}
	return lines
}
