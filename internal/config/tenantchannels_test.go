package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const tenantSMS = `{"type": "sms", "account_sid": "AC1", "auth_token": "hush", "from": "+4512345678"}`

func bounds() TenantChannels {
	return TenantChannels{Max: 20, Types: []string{Webhook, SMS, Email, FCM, APNs}, Checks: ChannelChecks{
		Host: func(host string) string {
			return unless(!strings.HasPrefix(host, "10.") && host != "localhost" && host != "::1", "must have a public host")
		},
		AppleKey:          func(text string) string { return unless(text == "good key", "is not the text of a .p8 file") },
		GoogleCredentials: checkNotEmpty,
	}}
}

// readTenant reads a channel, and returns its errors as lines.
func readTenant(t *testing.T, b TenantChannels, object string, before *TenantChannel) (Channel, TenantChannel, []string) {
	t.Helper()
	c, stored, bad, err := b.ReadTenantChannel("mine", []byte(object), before, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range bad {
		lines = append(lines, e.Error())
	}
	return c, stored, lines
}

// TestTenantChannel_Faults: all errors of an object are reported, and none shows a secret.
func TestTenantChannel_Faults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		object string
		want   []string
	}{
		{`{}`, []string{"type: is required"}},
		{`{"type": "smss"}`, []string{"type: smss: must be one of webhook, sms, email, fcm, apns (did you mean sms?)"}},
		{`{"type": "log"}`, []string{"type: log: must be one of"}},
		{`{"type": "sms", "acount_sid": "AC1", "auth_token": {"set": true, "set_at": "2026-12-01T08:00:00Z"}, "from": "x", "max_attempts": 0}`, []string{
			"acount_sid: is not a setting; allowed: type, timeout", "account_sid: is required", "auth_token: is masked: leave the member out to keep the secret, or send a new one", "max_attempts: 0: must be a whole number from 1 to 100",
		}},
		{`{"type": "sms", "account_sid": "${HOME}", "auth_token": "a-${DATABASE_URL}-b", "from": "x"}`, []string{"account_sid: must not refer to a variable", "auth_token: must not refer to a variable"}},
		{`{"type": "webhook", "url": "[redacted]"}`, []string{"url: is masked"}},
		{`{"type": "webhook", "url": "http://10.0.0.1/x", "allow_private_addresses": true}`, []string{"allow_private_addresses: true: must be false: the operator allows public addresses only"}},
		{`{"type": "webhook", "url": "https://10.0.0.1/x"}`, []string{"url: must have a public host"}},
		{`{"type": "webhook", "url": "https://[::1]:8/x"}`, []string{"url: must have a public host"}},
		{`{"type": "email", "host": "localhost", "from": "a@example.com"}`, []string{"host: must have a public host"}},
		{`{"type": "email", "host": "a.example", "from": "a@example.com", "allowed_from": ["b@example.com", "x"]}`, []string{"allowed_from[1]: x: must be one e-mail address"}},
		{`{"type": "email", "host": "a.example", "from": "a@example.com", "dkim": {"domain": "a.example", "selector": "s", "key_file": "/etc/passwd"}}`, []string{"dkim: is for channels of the operator only: its key is a file"}},
		{`{"type": "sms", "account_sid": "AC1", "auth_token": "hush", "from": "x", "base_url": "https://10.1.1.1"}`, []string{"base_url: must have a public host"}},
		{`{"type": "apns", "key_file": "/etc/passwd", "key_id": "ABCDE12345", "team_id": "ABCDE12345", "topic": "x"}`, []string{"key_file: is for channels of the operator only", "key: is required"}},
		{`{"type": "apns", "key": "hush", "key_id": "ABCDE12345", "team_id": "ABCDE12345", "topic": "x"}`, []string{"key: is not the text of a .p8 file"}},
		{`{"type": "fcm", "credentials_file": "/etc/passwd"}`, []string{"credentials_file: is for channels of the operator only", "credentials: is required"}},
		{`{"type": "webhook", "url": "https://a.example", "offered_to": ["acme"], "name": "x"}`, []string{"offered_to: is for channels of the operator only", "name: is a part of answers only"}},
		{`{"type": "webhook", "url": "https://a.example", "timeout": "31s"}`, []string{"timeout: 31s: must be at most half of delivery.lease, which is 1 minute"}},
		{`{"type": "webhook", "url": "https://a.example", "throughput": {"rat": 5}}`, []string{"throughput.rat", "throughput.rate: is required"}},
		{`{"type": "webhook", "url": "https://a.example", "throughput": {"rate": 1, "per": "2562047h", "burst": 1000000}}`, []string{"throughput.per: 2562047h: must be a duration from 1 microsecond to 31 days"}},
		{`{"type": "webhook", "url": "https://a.example", "throughput": {"rate": 1, "per": "1h", "burst": 745}}`, []string{"throughput.burst: 745: must be at most 744: so many are sent in 31 days"}},
		{`{"type": "webhook", "url": "https://a.example", "max_attempts": 100, "backoff": {"first": "1ns", "max": "9ms"}}`, []string{"backoff.first: 1ns: must be a duration of at least 10 milliseconds", "backoff.max: 9ms: must be a duration of at least 10 milliseconds"}},
		{`{"type": "webhook", "url": "https://a.example", "url": "https://b.example"}`, []string{"url: is written twice"}},
		{`[]`, []string{"a list: must be an object with a type and the settings of that type"}},
		{`null`, []string{"must be an object with a type"}},
		{`{"type": "webhook", "url": "https://a.example:99999/"}`, []string{"url: https://…: must have a port from 1 to 65535"}},
		{`{"type": "fcm", "credentials": {"token_uri": "hush"}}`, []string{"credentials: an object: must be a string"}},
		{`{"type": "fcm", "credentials": "{\"token_uri\": \"https://10.0.0.1/hush\"}"}`, []string{"credentials: has a token_uri that must have a public host"}},
		{`{"type": "fcm", "credentials": "{\"token_uri\": \"http://a.example/hush\"}"}`, []string{"credentials: has a token_uri that does not begin with https://"}},
	} {
		_, _, lines := readTenant(t, bounds(), tt.object, nil)
		text := strings.Join(lines, "\n")
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q, want %q", tt.object, lines, want)
			}
		}
		if len(lines) != len(tt.want) || strings.Contains(text, "hush") || strings.Contains(text, "HOME") {
			t.Errorf("%s: %d errors, want %d: %q", tt.object, len(lines), len(tt.want), lines)
		}
	}
}

// TestTenantChannel_Secrets: they are stored apart from the settings, and stay if they are left out, for the same type and the same host.
func TestTenantChannel_Secrets(t *testing.T) {
	t.Parallel()
	b := bounds()
	_, was, wrong := readTenant(t, b, tenantSMS, nil)
	if len(wrong) > 0 || was.Secrets["auth_token"] != "hush" || was.Secrets["account_sid"] != "AC1" || strings.Contains(string(was.Settings), "hush") {
		t.Fatalf("%s, %q", was.Settings, wrong)
	}
	if c, bad, err := b.OpenTenantChannel("mine", was, time.Minute); err != nil || bad != nil || c.SMS.AuthToken != "hush" || c.SMS.From != "+4512345678" {
		t.Errorf("%+v, %v, %v", c, bad, err)
	}
	for _, tt := range []struct{ object, want string }{
		{`{"type": "sms", "from": "Shop"}`, "hush"},
		{`{"type": "sms", "from": "Shop", "auth_token": "new"}`, "new"},
		{`{"type": "sms", "from": "Shop", "api_key_sid": "SK1", "api_key_secret": "x"}`, ""},
		{`{"type": "sms", "from": "Shop", "auth_token": null}`, "auth_token: is required, or api_key_sid"},
		{`{"type": "sms", "from": "Shop", "base_url": "https://evil.example"}`, "account_sid: the stored secret is not sent to another host: send it again\nauth_token: the stored secret is not sent to another host: send it again"},
		{`{"type": "webhook", "url": "https://a.example"}`, ""},
	} {
		_, stored, lines := readTenant(t, b, tt.object, &was)
		if len(lines) > 0 {
			if strings.Join(lines, "\n") != tt.want {
				t.Errorf("%s: %q, want %q", tt.object, lines, tt.want)
			}
			continue
		}
		if got := string(stored.Secrets["auth_token"]); got != tt.want {
			t.Errorf("%s: auth_token %q, want %q", tt.object, got, tt.want)
		}
	}
	key := `{"type": "sms", "account_sid": "AC1", "from": "+4512345678", "api_key_sid": "SK1", "api_key_secret": "x"}`
	_, was, _ = readTenant(t, b, key, nil)
	if _, stored, lines := readTenant(t, b, `{"type": "sms", "from": "Shop", "auth_token": "back"}`, &was); len(lines) > 0 || stored.Secrets["api_key_secret"]+stored.Secrets["api_key_sid"] != "" {
		t.Errorf("another way to sign in keeps the former one: %q", lines)
	}
}

// TestTenantChannel_Members: answers show the defaults, and masks instead of secrets.
func TestTenantChannel_Members(t *testing.T) {
	t.Parallel()
	c, _, _ := readTenant(t, bounds(), strings.Replace(tenantSMS, `{`, `{"throughput": {"rate": 5}, `, 1), nil)
	got := string(c.Members(func(string, Secret) any { return map[string]bool{"set": true} }))
	const want = `{"type":"sms","timeout":"10s","allow_private_addresses":false,"on_unknown":"retry","max_attempts":8,"backoff":{"first":"5s","max":"15m"},` +
		`"throughput":{"rate":5,"per":"1s","burst":1,"unit":"messages"},"levels":{"urgent":70,"normal":20,"bulk":10},"disabled":false,"account_sid":{"set":true},"auth_token":{"set":true},"api_key_sid":{"set":true},"api_key_secret":{"set":true},"from":"+4512345678"}`
	if want := strings.NewReplacer(`"api_key_sid":{"set":true},`, "", `"api_key_secret":{"set":true},`, "").Replace(want); got != want {
		var is any
		t.Errorf("%s (%v)\nwant %s", got, json.Unmarshal([]byte(got), &is), want)
	}
}

// TestChannelTypes: every type has its own members and those of all types, and no member of the operator.
func TestChannelTypes(t *testing.T) {
	t.Parallel()
	for _, of := range ChannelTypes() {
		names := map[string]bool{}
		for _, m := range of.Members {
			names[m.Name] = true
			if strings.Contains(m.Meaning, "ENV_NAME") || m.Form.Kind == "" && m.Default != "{}" && m.Name != "throughput" {
				t.Errorf("%s: %+v", of.Type, m)
			}
		}
		if !names["timeout"] || names["key_file"] || names["offered_to"] || names["auth_token"] != (of.Type == SMS) || !names["throughput.rate"] {
			t.Errorf("%s: %v", of.Type, names)
		}
	}
}

// TestTenantChannels_Bounds: all errors of the operator's bounds are reported, with the nearest type.
func TestTenantChannels_Bounds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"tenant_channels: {max: -1, types: [webhok, sms, sms], allow_private: true}": {
			"tenant_channels.max: -1: must be a whole number from 0 to 1000",
			"tenant_channels.allow_private: is not a setting; allowed: max, types, allow_private_addresses",
			`tenant_channels.types[0]: "webhok": must be one of webhook, sms, email, fcm, apns, log (did you mean webhook?)`,
			`tenant_channels.types[2]: "sms": is listed twice`,
		},
		"tenant_channels: {types: []}":                                    {"tenant_channels.types: a list: must be a list with at least one of webhook, sms"},
		"tenant_channels: {types: sms}":                                   {`tenant_channels.types: "sms": must be a list with at least one of webhook, sms`},
		`channels: {a: {type: log, offered_to: [demo, other, demo, ""]}}`: {`channels.a.offered_to[2]: "demo": is listed twice`, `channels.a.offered_to[3]: "": must be the name of a tenant`},
		"channels: {a: {type: log, offered_to: demo}}":                    {`channels.a.offered_to: "demo": must be a list of strings`},
		"tenant_channels: {max: 0, types: [log]}":                         nil,
	} {
		_, errs := read(text)
		if len(want) == 0 && errs == nil {
			continue
		}
		got := errs.Error()
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%s: %s; want %s", text, got, line)
			}
		}
		if n := strings.Count(got, "\n") + 1; n != len(want) {
			t.Errorf("%s: %d errors, want %d: %s", text, n, len(want), got)
		}
	}
}

// TestTenantChannels_Shown: an answer has the operator's bounds of today as defaults, and can be sent back.
func TestTenantChannels_Shown(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		b := bounds()
		b.AllowPrivateAddresses = allowed
		_, stored, lines := readTenant(t, b, `{"type": "webhook", "url": "https://a.example"}`, nil)
		if len(lines) > 0 {
			t.Fatal(lines)
		}
		c, bad, err := b.ShownTenantChannel("mine", stored)
		if err != nil || len(bad) > 0 || c.AllowPrivateAddresses != allowed {
			t.Errorf("bounds of %t show %t: %v, %v", allowed, c.AllowPrivateAddresses, bad, err)
		}
		stored.Settings = []byte(`{"type": "webhook", "allow_private_addresses": true}`) // as the operator allowed once
		if c, bad, err := b.ShownTenantChannel("mine", stored); err != nil || len(bad) > 0 || !c.AllowPrivateAddresses {
			t.Errorf("bounds of %t show an earlier setting as %t: %v, %v", allowed, c.AllowPrivateAddresses, bad, err)
		}
	}
}

// TestTenantChannel_Lists: answers show lists.
func TestTenantChannel_Lists(t *testing.T) {
	t.Parallel()
	c, _, wrong := readTenant(t, bounds(), `{"type": "email", "host": "a.example", "from": "a@example.com", "allowed_from": ["B <b@example.com>", "c@example.com"]}`, nil)
	got := string(c.Members(func(string, Secret) any { return nil }))
	if want := `"allowed_from":["B <b@example.com>","c@example.com"]`; len(wrong) > 0 || !strings.Contains(got, want) {
		t.Errorf("%s, %q, want %s", got, wrong, want)
	}
}
