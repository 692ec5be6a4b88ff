package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTenantChannels_DisabledChecks: the messages of a disabled channel are checked, measured and simulated as while it is enabled.
func TestTenantChannels_DisabledChecks(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	tenant := testenv.Query[uuid.UUID](t, string(b.app.cfg.DatabaseURL), `SELECT id FROM tenants WHERE name = 'acme'`)
	answers := func(disabled bool) (all []string) {
		c := b.ask("PUT", "/v1/channels/sms", fmt.Sprintf(
			`{"type": "sms", "account_sid": "AC1", "auth_token": "hush", "from": "+4512345678", "base_url": %q, "throughput": {"rate": 2, "unit": "segments"}, "disabled": %v}`, b.own.url, disabled))
		if c["disabled"] != disabled {
			t.Fatalf("the channel is not stored: %v", c)
		}
		p := b.ask("POST", "/v1/pushes", `{"recipient": "bad", "channel": "sms", "to": "not a number", "message": {"nothing": "hi"}}`)
		if p["status"] != 422.0 || !strings.Contains(fmt.Sprint(p), "body.to") || !strings.Contains(fmt.Sprint(p), "body.message") {
			t.Errorf("disabled %v: a push that the provider refuses: %v", disabled, p)
		}
		const later = `"recipient": "anna", "channel": "sms", "to": "+4512345678", "message": {"body": "Snow ☃"}, "send_at": "2026-12-31T10:00:00Z"`
		booked := b.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": "r%v", "channel": "sms", "to": "+4512345678", "message": {"body": "Snow ☃"}, "send_at": %q}`, disabled, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
		checked := b.ask("POST", "/v1/quota/check", `{`+strings.Replace(later, `"to": "+4512345678", `, "", 1)+`}`)
		read := b.ask("GET", fmt.Sprint("/v1/pushes/", booked["id"]), "")
		all = append(all, fmt.Sprint(p["errors"]), fmt.Sprint(booked["sms"]), fmt.Sprint(checked["sms"]), fmt.Sprint(read["sms"]))
		for _, sms := range all[1:] {
			if sms != "map[characters:6 encoding:UCS-2 segments:1]" {
				t.Errorf("disabled %v: the sizes are %q", disabled, all[1:])
			}
		}
		every, segmented := b.app.channelSpeed(tenant, "sms")
		return append(all, fmt.Sprint(every, segmented))
	}
	if enabled, disabled := answers(false), answers(true); !slices.Equal(enabled, disabled) || enabled[4] != "500ms true" {
		t.Errorf("while it is enabled: %q, disabled: %q", enabled, disabled)
	}
}

// TestTenantChannels_DisabledShown: the status and a due push say that its channel is disabled, until it is enabled.
func TestTenantChannels_DisabledShown(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("push", `, "disabled": true`)
	id := b.submit(b.caller, "push", "waits")
	state := func() (of map[string]any) {
		for _, one := range b.ask("GET", "/v1/status", "")["channels"].([]any) {
			if one := one.(map[string]any); one["name"] == "push" {
				of = one
			}
		}
		return of
	}
	if of := state(); of["problem"] != "it is disabled" {
		t.Errorf("the status has %v", of)
	}
	var held map[string]any
	testenv.Until(t, 50*time.Millisecond, "the push is held", func() bool {
		held, _ = b.ask("GET", "/v1/pushes/"+id, "")["held"].(map[string]any)
		return held != nil
	})
	if held["by"] != "channel" || held["problem"] != "it is disabled" || held["since"] == "" || held["until"] != nil {
		t.Errorf("the push is held: %v", held)
	}
	if list := b.text("GET", "/v1/pushes?status=scheduled", ""); !strings.Contains(list, `"by":"channel"`) {
		t.Errorf("the list: %s", list)
	}
	future := b.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": "later", "channel": "push", "message": {"body": "x"}, "send_at": %q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	if future["held"] != nil {
		t.Errorf("a push that is not due is held: %v", future)
	}
	b.put("push", "")
	b.arrives(b.own, "waits")
	if of := state(); of["problem"] != nil {
		t.Errorf("enabled again, the status has %v", of)
	}
	if p := b.ask("GET", "/v1/pushes/"+id, ""); p["held"] != nil {
		t.Errorf("the push that was sent is held: %v", p)
	}
}
