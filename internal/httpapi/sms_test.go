package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/sms"
)

// setupTexts has a channel sms that sends text messages.
func setupTexts(t *testing.T) *bundle {
	b := setup(t)
	b.textSize = func(channel string, message json.RawMessage) (sms.Size, bool) {
		var m struct{ Body string }
		_ = json.Unmarshal(message, &m)
		return sms.Measure(m.Body), channel == "sms"
	}
	b.svc = b.service(b.store, testPolicy())
	b.cfg.Campaigns = campaign.New(b.store, b.now, campaign.Config{MaxPerTenant: 20, MaxAudience: 1_000_000, Channels: []string{"push", "sms"}, MaxHorizon: 365 * 24 * time.Hour, TextSize: b.textSize})
	b.cfg.Simulator = campaign.NewSimulator(b.store, b.cfg.Campaigns, b.svc, campaign.SimulatorConfig{Policy: quota.Policy(testPolicy()), Parse: campaign.Parse})
	b.api = New(b.svc, b.store, b.cfg)
	return b
}

// TestSMS_Pushes: every answer about a push of a channel of text messages has the size of its text.
func TestSMS_Pushes(t *testing.T) {
	b := setupTexts(t)
	at := b.in(48 * time.Hour)
	long := strings.Repeat("a", 159) + "😀"
	body := func(recipient, text string) string {
		return `{"recipient":"` + recipient + `","send_at":"` + at + `","channel":"sms","to":"+4512345678","message":{"body":"` + text + `"}}`
	}
	three := `"sms":{"encoding":"UCS-2","characters":160,"segments":3}`
	has := func(r reply, want string) {
		t.Helper()
		if n := strings.Count(r.text, want); n != 1 {
			t.Errorf("%s\nhas %d times %s", r.text, n, want)
		}
	}
	has(b.send("POST", "/v1/pushes?validate_only=true", body("a", long)).must(t, 201), three)
	made := b.send("POST", "/v1/pushes", body("a", long)).must(t, 201)
	has(made, three)
	id := made.at(t, "id").(string)
	has(b.send("GET", "/v1/pushes/"+id, "").must(t, 200), three)
	has(b.send("GET", "/v1/pushes", "").must(t, 200), three)
	has(b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+b.in(50*time.Hour)+`"}`).must(t, 200), three)
	has(b.send("POST", "/v1/pushes/"+id+"/cancel", "").must(t, 200), three)
	has(b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+at+`"}`).must(t, 409, "not-reschedulable"), three)

	batch := b.send("POST", "/v1/pushes/batch", `{"pushes":[`+body("b", "Hi €")+`,`+body("c", "")+`,{"recipient":"d","channel":"push","message":{"body":"😀"}}]}`).must(t, 200)
	has(batch, `"sms":{"encoding":"GSM-7","characters":5,"segments":1}`)
	has(batch, `"sms":{"encoding":"GSM-7","characters":0,"segments":1}`)

	// A template is measured as it is rendered, and a half of a surrogate pair as what replaces it.
	has(b.send("POST", "/v1/pushes", `{"recipient":"e","channel":"sms","to":"+4512345678","template":true,"variables":{"name":"Zoë"},"message":{"body":"Hi {{ name }}"}}`).must(t, 201),
		`"sms":{"encoding":"UCS-2","characters":6,"segments":1}`)

	// The first channel sends no text messages.
	if r := b.send("POST", "/v1/pushes", pushBody("f", at, "")).must(t, 201); strings.Contains(r.text, `"sms"`) {
		t.Error(r.text)
	}
}

// TestSMS_Check: a check measures the text, if it has one.
func TestSMS_Check(t *testing.T) {
	b := setupTexts(t)
	for question, want := range map[string]string{
		`{"recipient":"a","channel":"sms","message":{"body":"Hi 😀"}}`:                                            `"sms":{"encoding":"UCS-2","characters":4,"segments":1}`,
		`{"recipient":"a","channel":"sms","template":true,"variables":{"n":"5 €"},"message":{"body":"{{ n }}"}}`: `"sms":{"encoding":"GSM-7","characters":4,"segments":1}`,
		`{"recipient":"a","channel":"sms"}`:                                                                      "",
		`{"recipient":"a","channel":"push","message":{"body":"Hi"}}`:                                             "",
	} {
		r := b.send("POST", "/v1/quota/check", question).must(t, 200)
		if strings.Contains(r.text, `"sms"`) != (want != "") || !strings.Contains(r.text, want) || r.at(t, "allowed") != true {
			t.Errorf("%s: %s", question, r.text)
		}
	}
	b.send("POST", "/v1/quota/check", `{"recipient":"a","template":true,"variables":{}}`).must(t, 422, "invalid-request")
	b.send("POST", "/v1/quota/check", `{"recipient":"a","message":"Hi"}`).must(t, 422, "invalid-request")
	b.send("POST", "/v1/quota/check", `{"recipient":"a","template":true,"message":{"body":"{{ none }}"}}`).must(t, 422, "invalid-request")
}

// TestSMS_Campaign: a preview and a simulation count the segments of each recipient's own text.
func TestSMS_Campaign(t *testing.T) {
	b := setupTexts(t)
	b.send("PUT", "/v1/recipients/out", `{"opt_outs":{"all":true}}`).must(t, 201)
	id := b.campaign(`{"channel":"sms","send_at":"` + b.in(48*time.Hour) + `","message":{"body":"{{ text }}"}}`)
	b.audience(id, "recipient,to,text\na,+4512345678,Hi\nb,+4512345678,"+strings.Repeat("b", 161)+"\nc,+4512345678,"+strings.Repeat("c", 71)+"😀\nout,+4512345678,Hi\n")
	r := b.send("POST", "/v1/campaigns/"+id+"/preview", "").must(t, 200)
	for i, want := range []float64{1, 2, 2} {
		if got := r.at(t, "messages", i, "sms", "segments"); got != want {
			t.Errorf("text %d has %v segments, want %v", i, got, want)
		}
	}
	if r := b.simulate(id).must(t, 200); !strings.Contains(r.text, `"segments":{"total":5,"by_count":{"1":1,"2":2}}`) {
		t.Error(r.text)
	}
	other := b.campaign(`{"channel":"push","send_at":"` + b.in(48*time.Hour) + `","message":{"body":"Hi"}}`)
	b.audience(other, "recipient\na\n")
	for _, r := range []reply{b.simulate(other), b.send("POST", "/v1/campaigns/"+other+"/preview", "")} {
		if strings.Contains(r.must(t, 200).text, "segments") || strings.Contains(r.text, `"sms"`) {
			t.Error(r.text)
		}
	}
}
