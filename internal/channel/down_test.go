package channel

import (
	"testing"
	"time"
)

// A failure that does not depend on the push says that the provider is down. One that does says nothing about
// other pushes, although it may be tried again.
func TestChannels_Down(t *testing.T) {
	t.Parallel()
	fate := func(t *testing.T, s subject, b behavior, timeout time.Duration) Result {
		c, _ := s.start(t, row{name: "down", behavior: b}, testConnection(timeout))
		return c.Send(t.Context(), s.push(), 1)
	}
	for _, s := range subjects() {
		if s.mail {
			continue
		}
		for name, tt := range map[string]struct {
			behavior behavior
			down     bool
		}{
			"hangs": {hangs(""), true}, "drops": {drops, true}, "500": {answers(500, ""), true}, "503": {answers(503, ""), true},
			"401": {answers(401, ""), true}, "403": {answers(403, ""), s.coded},
			"200": {answers(200, ""), false}, "400": {answers(400, ""), false}, "404": {answers(404, ""), false},
			"408": {answers(408, ""), false}, "429": {answers(429, ""), false}, "410": {answers(410, ""), false},
		} {
			t.Run(s.name+" "+name, func(t *testing.T) {
				t.Parallel()
				timeout := ample
				if name == "hangs" {
					timeout = brief
				}
				if got := fate(t, s, tt.behavior, timeout); got.Down != tt.down {
					t.Errorf("%+v", got)
				}
			})
		}
	}
	for step, replies := range map[string]map[string]bool{
		"greeting": {"554 no": true, mailDrops: true}, "AUTH": {"535 no": true}, "MAIL": {"550 not you": true, "451 later": true},
		"RCPT": {"450 4.2.0 greylisted": false, "550 5.1.1 gone": false, "452 4.2.2 full": false, "421 going": true, mailDrops: true},
		"DATA": {"451 later": false}, "dot": {"451 4.7.1 greylisted": false, "554 spam": false, mailDrops: true, "250 ok": false},
	} {
		for reply, down := range replies {
			t.Run("email "+step+" "+reply[:3], func(t *testing.T) {
				t.Parallel()
				server := newMailServer(t, mailSetup{script: mailScript{step: reply}})
				e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample)})
				if got := e.Send(t.Context(), emailPush(`{"body":"x"}`), 1); got.Down != down {
					t.Errorf("%+v", got)
				}
			})
		}
	}
	nobody := newTestWebhook(t, WebhookConfig{Connection: testConnection(ample), URL: "http://127.0.0.1:1"})
	if got := nobody.Send(t.Context(), testPush(), 1); !got.Down {
		t.Errorf("no server: %+v", got)
	}
}
