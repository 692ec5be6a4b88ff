package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// everyType is a channel of each type, with every setting of its own.
const everyType = `channels:
  texts: {type: sms, account_sid: "${SID}", auth_token: "${TOKEN}", from: "+4512345678", status_callback: "https://x.test/${TOKEN}", base_url: "https://twilio.test"}
  texts-2: {type: sms, account_sid: AC1, api_key_sid: SK1, api_key_secret: "${TOKEN}", messaging_service_sid: MG1, base_url: "http://localhost:1", allow_private_addresses: true}
  mail: {type: email, host: smtp.example.com, port: 465, tls: tls, username: u, password: "${TOKEN}", from: "Shop <shop@example.com>", reply_to: help@example.com, allowed_from: [a@example.com, "B <b@bücher.example>"], bounce_address: "b+{id}@example.com", dkim: {domain: example.com, selector: s1, key_file: /run/secrets/dkim.pem}, message_id_domain: m.example.com}
  mail-2: {type: email, host: "::1", tls: none, from: a@b, allow_private_addresses: true}
  droid: {type: fcm, credentials: "${JSON}", project_id: shop-1, base_url: "https://fcm.test", token_url: "https://token.test"}
  droid-2: {type: fcm, credentials_file: /run/secrets/fcm.json}
  phone: {type: apns, key: "${PEM}", key_id: ABCDE12345, team_id: ZYXWV98765, topic: com.example.shop, base_url: "https://api.sandbox.push.apple.com"}
  phone-2: {type: apns, key_file: key.p8, key_id: ABCDE12345, team_id: ZYXWV98765, topic: com.example.shop}
`

var everyVariable = []string{"SID=AC0123", "TOKEN=" + hush, `JSON={"private_key": "` + hush + `"}`, "PEM=-----BEGIN\n" + hush + "\n-----END"}

func TestChannel_Types(t *testing.T) {
	t.Parallel()
	c, errs := read(everyType, everyVariable...)
	if errs != nil {
		t.Fatal(errs)
	}
	channel := func(name, kind string, change func(*Channel)) Channel {
		c := Channel{Name: name, Type: kind, Timeout: 10 * time.Second, OnUnknown: Retry, MaxAttempts: 8, Backoff: Backoff{5 * time.Second, 15 * time.Minute}, Levels: Levels{70, 20, 10}}
		change(&c)
		return c
	}
	want := []Channel{
		channel("texts", SMS, func(c *Channel) {
			c.SMS = SMSSettings{AccountSID: "AC0123", AuthToken: hush, From: "+4512345678", StatusCallback: "https://x.test/" + hush, BaseURL: "https://twilio.test"}
		}),
		channel("texts-2", SMS, func(c *Channel) {
			c.AllowPrivateAddresses = true
			c.SMS = SMSSettings{AccountSID: "AC1", APIKeySID: "SK1", APIKeySecret: hush, MessagingServiceSID: "MG1", BaseURL: "http://localhost:1"}
		}),
		channel("mail", Email, func(c *Channel) {
			c.Email = EmailSettings{
				Host: "smtp.example.com", Port: 465, TLS: TLS, Username: "u", Password: hush, From: "Shop <shop@example.com>", ReplyTo: "help@example.com",
				AllowedFrom: []string{"a@example.com", "B <b@bücher.example>"}, MessageIDDomain: "m.example.com",
				BounceAddress: "b+{id}@example.com", DKIM: DKIM{"example.com", "s1", "/run/secrets/dkim.pem"},
			}
		}),
		channel("mail-2", Email, func(c *Channel) {
			c.AllowPrivateAddresses = true
			c.Email = EmailSettings{Host: "::1", Port: 587, TLS: NoTLS, From: "a@b"}
		}),
		channel("droid", FCM, func(c *Channel) {
			c.FCM = FCMSettings{Credentials: `{"private_key": "` + hush + `"}`, ProjectID: "shop-1", BaseURL: "https://fcm.test", TokenURL: "https://token.test"}
		}),
		channel("droid-2", FCM, func(c *Channel) { c.FCM = FCMSettings{CredentialsFile: "/run/secrets/fcm.json"} }),
		channel("phone", APNs, func(c *Channel) {
			c.APNs = APNsSettings{Key: "-----BEGIN\n" + hush + "\n-----END", KeyID: "ABCDE12345", TeamID: "ZYXWV98765", Topic: "com.example.shop", BaseURL: "https://api.sandbox.push.apple.com"}
		}),
		channel("phone-2", APNs, func(c *Channel) {
			c.APNs = APNsSettings{KeyFile: "key.p8", KeyID: "ABCDE12345", TeamID: "ZYXWV98765", Topic: "com.example.shop"}
		}),
	}
	if diff := cmp.Diff(want, c.Channels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestChannel_Errors lists the errors of channels, all of them. What is secret is not
// shown.
func TestChannel_Errors(t *testing.T) {
	t.Parallel()
	const sid = "must be 1 to 64 of a-z, A-Z, 0-9 and -"
	for _, tt := range []struct {
		channel string
		want    []string
	}{
		{`{type: sms}`, []string{
			"account_sid: is required (the account at Twilio; may use ${ENV_NAME})",
			"auth_token: is required, or api_key_sid",
			"from: is required, or messaging_service_sid",
		}},
		{`{type: sms, account_sid: "hush/..", auth_token: " ", api_key_secret: x, from: a, messaging_service_sid: MG1, status_callback: "x://hush", base_url: "http://h"}`, []string{
			"account_sid: " + sid,
			"auth_token: must not be empty",
			"status_callback: x://…: must be an absolute URL with http:// or https:// and a host",
			"api_key_sid: is required beside api_key_secret",
			"messaging_service_sid: is not allowed beside from",
			`base_url: "http://h": must begin with https://, unless allow_private_addresses is true`,
		}},
		{`{type: sms, account_sid: a, auth_token: x, api_key_sid: b, api_key_secret: c, from: "+45 12", base_url: "https://u:hush@h"}`, []string{
			`from: "+45 12": must be a number in E.164 form such as +4512345678, a short code, or a name of at most 11 letters, digits and spaces, with a letter`,
			"base_url: https://…: must have no user, no query and no fragment",
			"api_key_sid: is not allowed beside auth_token",
		}},
		{`{type: sms, account_sid: a, auth_token: x, from: a, url: "https://h", host: h, acount_sid: b}`, []string{
			"url: is not for type sms",
			"host: is not for type sms",
			"acount_sid: is not a setting; allowed: type, timeout, allow_private_addresses, on_unknown, max_attempts, backoff, throughput, levels, offered_to, account_sid, auth_token, " +
				"api_key_sid, api_key_secret, from, messaging_service_sid, status_callback, base_url (did you mean account_sid?)",
		}},
		{`{type: sms, account_sid: a, auth_token: x, from: "4512345678"}`, []string{
			`from: "4512345678": must be a number in E.164 form such as +4512345678, a short code, or a name of at most 11 letters, digits and spaces, with a letter`,
		}},
		{`{type: sms, account_sid: a, auth_token: x, from: "12345"}`, nil},
		{`{type: sms, account_sid: a, auth_token: x, from: "12345", throughput: {rate: 10, unit: segments}}`, nil},
		{`{type: sms, account_sid: a, auth_token: x, from: "12345", throughput: {rate: 10, unit: segment}}`, []string{
			`throughput.unit: "segment": must be one of messages, segments (did you mean segments?)`,
		}},
		{`{type: log, throughput: {rate: 10, unit: segments}}`, []string{"throughput.unit: is not for type log"}},
		{`{type: log, throughput: {rate: 10, unit: segment}}`, []string{
			`throughput.unit: "segment": must be one of messages, segments (did you mean segments?)`,
		}},
		{`{type: log, throughput: {rate: 0, unit: messages}}`, []string{
			"throughput.rate: 0: must be a whole number from 1 to 1000000000",
		}},
		{`{type: sms, account_sid: a, auth_token: x, from: "Shop 24"}`, nil},
		{`{type: email}`, []string{
			"host: is required (the SMTP server's name or address)",
			`from: is required (the sender, such as "Shop <shop@example.com>")`,
		}},
		{`{type: email, host: "h:25", port: 0, tls: ssl, username: u, from: "a@b, c@d", reply_to: x, allowed_from: [a@b, x, "ä@b.example"], message_id_domain: "a>b"}`, []string{
			`host: "h:25": must be a host's name or address, without a port`,
			"port: 0: must be a whole number from 1 to 65535",
			`tls: "ssl": must be one of starttls, tls, none`,
			`from: "a@b, c@d": must be one e-mail address, such as shop@example.com or Shop <shop@example.com>`,
			`reply_to: "x": must be one e-mail address, such as shop@example.com or Shop <shop@example.com>`,
			`message_id_domain: "a>b": must be a domain such as example.com`,
			"password: is required beside username",
			`allowed_from[1]: "x": must be one e-mail address, such as shop@example.com or Shop <shop@example.com>`,
			`allowed_from[2]: "ä@b.example": must have only ASCII characters before the @: mail servers do not reliably take others`,
		}},
		{`{type: email, host: h, from: a@b, bounce_address: bounces@example.com, dkim: {domain: "a b", selector: "", key: hush}}`, []string{
			`bounce_address: "bounces@example.com": must be an e-mail address with {id} once, before the @, such as bounces+{id}@example.com`,
			`dkim.domain: "a b": must be a domain such as example.com`,
			`dkim.selector: "": must be a name of letters, digits, dashes and dots`,
			"dkim.key_file: is required (the path of the private key, in PEM form: RSA with 2048 bits (at least 1024), or Ed25519)",
			"dkim.key: is not a setting; allowed: domain, selector, key_file",
		}},
		{`{type: email, host: h, from: a@b, bounce_address: "{id}{id}@example.com"}`, []string{
			`bounce_address: "{id}{id}@example.com": must be an e-mail address with {id} once, before the @, such as bounces+{id}@example.com`,
		}},
		{`{type: email, host: h, from: a@b, bounce_address: "b@{id}.example.com"}`, []string{
			`bounce_address: "b@{id}.example.com": must be an e-mail address with {id} once, before the @, such as bounces+{id}@example.com`,
		}},
		{`{type: email, host: h, allowed_from: a@b, from: a@b}`, []string{`allowed_from: "a@b": must be a list of strings`}},
		{`{type: email, host: h, tls: none, username: u, password: hush, from: a@b}`, []string{
			`tls: "none": must be starttls or tls, unless allow_private_addresses is true`,
			"password: is not allowed with tls: none, which would send it unencrypted",
		}},
		{`{type: fcm}`, []string{"credentials: is required, or credentials_file"}},
		{`{type: fcm, credentials: hush, credentials_file: f, project_id: "a/b", base_url: "http://h", token_url: x}`, []string{
			`project_id: "a/b": must be the id of a project: 1 to 64 of a-z, 0-9, :, . and -`,
			"token_url: must be an absolute URL with http:// or https:// and a host",
			"credentials_file: is not allowed beside credentials",
			`base_url: "http://h": must begin with https://, unless allow_private_addresses is true`,
		}},
		{`{type: apns, allow_private_addresses: true, key: "${NONE}", key_id: abc, team_id: ABCDE12345, topic: "a b", base_url: "http://h"}`, []string{
			"key: the environment variable NONE is not set or empty",
			`key_id: "abc": must be ten of A-Z and 0-9`,
			`topic: "a b": must be a bundle id such as com.example.app`,
			`base_url: "http://h": must begin with https://: APNs speaks HTTP/2 over TLS only`,
		}},
		{`{type: webhook, url: "https://h", previous_secret: "hush hush hush hush"}`, []string{"secret: is required beside previous_secret"}},
		{`{type: webhook, url: "https://h", secret: "0123456789abcdef", previous_secret: hush}`, []string{
			"previous_secret: must be whsec_ and base64, or any other string of at least 16 bytes, which is used unchanged",
		}},
	} {
		_, errs := read("channels:\n  x: " + tt.channel)
		var got []string
		for _, e := range errs {
			got = append(got, strings.TrimPrefix(e.Error(), "sendquota.yaml:2: channels.x."))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.channel, diff)
		}
		if strings.Contains(errs.Error(), "hush") {
			t.Errorf("a secret in the errors: %v", errs)
		}
	}
}

func TestChannel_PrintsNoSecrets(t *testing.T) {
	t.Parallel()
	c, _ := read(everyType, everyVariable...)
	printed(t, c, c.Channels)
}
