package channel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// The table lists what each channel finds wrong with a push before it is booked: every fault, each with its field.
func TestChannels_Check(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for _, tt := range []struct {
		channel, to, message string
		want                 []string // field: value, none for a push that is right
	}{
		{"webhook", "", `{}`, nil},
		{"webhook", "anything", `{"body":1}`, nil},

		{"sms", "+4512345678", `{"body":"x"}`, nil},
		{"sms", "+1234567", `{"body":"x"}`, nil},
		{"sms", "+123456789012345", `{"body":"` + strings.Repeat("æ", 1600) + `"}`, nil},
		{"sms", "+4512345678", `{"body":"` + strings.Repeat("æ", 1601) + `"}`, []string{"message.body"}},
		{"sms", "", `{}`, []string{"to", "message.body"}},
		{"sms", "", `{"title":"x","Body":"x"}`, []string{"to", "message.body"}},
		{"sms", "+4512345678", `{"body":""}`, []string{"message.body"}},
		{"sms", "+4512345678", `{"body":7}`, []string{"message.body"}},
		{"sms", "4512345678", `{"body":"x"}`, []string{"to: 4512345678"}},
		{"sms", "004512345678", `{"body":"x"}`, []string{"to: 004512345678"}},
		{"sms", "+0512345678", `{"body":"x"}`, []string{"to: +0512345678"}},
		{"sms", "+45 12 34 56 78", `{"body":"x"}`, []string{"to: +45 12 34 56 78"}},
		{"sms", "+123456", `{"body":"x"}`, []string{"to: +123456"}},
		{"sms", "+1234567890123456", `{"body":"x"}`, []string{"to: +1234567890123456"}},
		{"sms", "+4512345678\n", `{"body":"x"}`, []string{"to: +4512345678\n"}},
		{"sms", "+45١٢٣٤٥٦٧٨", `{"body":"x"}`, []string{"to: +45١٢٣٤٥٦٧٨"}},
		{"sms", "whatsapp:+4512345678", `{"body":"x"}`, []string{"to: whatsapp:+4512345678"}},

		{"email", "anna@example.com", `{"body":"x"}`, nil},
		{"email", "a.b+c'd@xn--bcher-kva.example", `{"title":"Grüße","html":"<p>"}`, nil},
		{"email", "anna@localhost", `{"body":"x"}`, nil},
		{"email", "anna@example.com", `{}`, []string{"message.body"}},
		{"email", "anna@example.com", `{"body":"","html":""}`, []string{"message.body"}},
		{"email", "anna@example.com", `{"body":"x","html":1}`, []string{"message.html"}},
		{"email", "anna@example.com", `{"body":"x","title":"a\r\nBcc: b@example.com"}`, []string{"message.title"}},
		{"email", "anna@example.com", `{"body":"x","title":"` + strings.Repeat("x", 901) + `"}`, []string{"message.title"}},
		{"email", "", `{"body":"x"}`, []string{"to"}},
		{"email", "anna", `{"body":"x"}`, []string{"to: anna"}},
		{"email", "anna@", `{"body":"x"}`, []string{"to: anna@"}},
		{"email", "@example.com", `{"body":"x"}`, []string{"to: @example.com"}},
		{"email", "Anna <anna@example.com>", `{"body":"x"}`, nil},
		{"email", "<anna@example.com>", `{"body":"x"}`, nil},
		{"email", "Änne <anna@bücher.example>", `{"body":"x"}`, nil},
		{"email", "Änne <änne@bücher.example>", `{"body":"x"}`, []string{"to: Änne <änne@bücher.example>"}},
		{"email", "a@example.com, b@example.com", `{"body":"x"}`, []string{"to: a@example.com, b@example.com"}},
		{"email", "a@example.com\r\nBcc: b@example.com", `{"body":"x"}`, []string{"to: a@example.com\r\nBcc: b@example.com"}},
		{"email", "a@example.com> SIZE=1", `{"body":"x"}`, []string{"to: a@example.com> SIZE=1"}},
		{"email", `"a b"@example.com`, `{"body":"x"}`, []string{`to: "a b"@example.com`}},
		{"email", "anna(me)@example.com", `{"body":"x"}`, []string{"to: anna(me)@example.com"}},
		{"email", "ånna@example.com", `{"body":"x"}`, []string{"to: ånna@example.com"}},
		{"email", strings.Repeat("a", 65) + "@example.com", `{"body":"x"}`, []string{"to: " + strings.Repeat("a", 65) + "@example.com"}},

		{"fcm", testRegistration, `{"title":"x"}`, nil},
		{"fcm", testRegistration, `{"data":{"a":"b"}}`, nil},
		{"fcm", testRegistration, `{"body":"x","data":null}`, nil},
		{"fcm", testRegistration, `{"body":"` + strings.Repeat("x", 4090) + `","data":{"abc":"def"}}`, nil},
		{"fcm", testRegistration, `{"body":"` + strings.Repeat("x", 4090) + `","data":{"abc":"defg"}}`, []string{"message"}},
		{"fcm", "short", `{}`, []string{"to: short", "message"}},
		{"fcm", testRegistration + "/../x", `{"body":"x"}`, []string{"to: " + testRegistration + "/../x"}},
		{"fcm", testRegistration, `{"body":"x","data":[1]}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":"y"}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"from":"a","google.b":"c","googly":1,"gcm.d":"e","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"from":"y","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"gcm":"y","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"message_type":"y","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"google":"y","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"google.b":"y","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"googles":"y","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"gcm.d":"y","x":"y"}}`, []string{"message.data"}},
		{"fcm", testRegistration, `{"body":"x","data":{"From":"y","from_us":"y","googly":"y","gcmx":"y","gcm_x":"y","message_types":"y"}}`, nil},

		{"apns", hex, `{"title":"x"}`, nil},
		{"apns", strings.Repeat("0A", 80), `{"body":"x","data":{"a":1},"aps":{"badge":1}}`, nil},
		{"apns", hex[1:], `{"body":"x"}`, []string{"to: " + hex[1:]}},
		{"apns", hex + "0", `{"body":"x"}`, []string{"to: " + hex + "0"}},
		{"apns", hex[2:] + "/x", `{"body":"x"}`, []string{"to: " + hex[2:] + "/x"}},
		{"apns", "", `{"data":{"a":1}}`, []string{"to", "message"}},
		{"apns", hex, `{"body":"x","data":{"aps":{}}}`, []string{"message.data.aps"}},
		{"apns", hex, `{"body":"x","data":1,"aps":[]}`, []string{"message.data", "message.aps"}},
		{"apns", hex, `{"body":"` + strings.Repeat("x", 4096-len(`{"aps":{"alert":{"body":""}}}`)) + `"}`, nil},
		{"apns", hex, `{"body":"` + strings.Repeat("x", 4097-len(`{"aps":{"alert":{"body":""}}}`)) + `"}`, []string{"message"}},
	} {
		c := map[string]Channel{"webhook": &Webhook{}, "sms": &SMS{}, "email": &Email{}, "fcm": &FCM{}, "apns": &APNs{}}[tt.channel]
		var got []string
		for _, f := range c.Check(tt.to, json.RawMessage(tt.message)) {
			text := f.Field
			if f.Value != nil {
				text += ": " + f.Value.(string)
			}
			got = append(got, text)
			if !strings.HasPrefix(f.Message, "must ") {
				t.Errorf("%s: the message is %q", tt.channel, f.Message)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s to %.80q with %.80s (-want +got):\n%s", tt.channel, tt.to, tt.message, diff)
		}
	}
}

// A push that was booked for another kind of channel under the same name is not sent.
func TestChannels_UnfitPush(t *testing.T) {
	for _, s := range subjects() {
		if s.name == "webhook" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c, requests := s.start(t, row{name: "200", behavior: answers(200, "")}, testConnection(0))
			for _, p := range []push.Push{
				{Content: push.Content{To: "../" + markTo + "\r\nX: y", Message: json.RawMessage(`{"body":"x"}`)}},
				{Content: push.Content{To: s.to, Message: json.RawMessage(`{"` + markMessage)}},
				{Content: push.Content{To: s.to}},
			} {
				got := c.Send(t.Context(), p, 1)
				if got.Outcome != push.Refused || !got.Final || !strings.HasPrefix(got.Error, "not sent: ") {
					t.Errorf("got %+v", got)
				}
				checkError(t, got.Error)
			}
			if n := requests(); n != 0 {
				t.Errorf("the provider got %d requests", n)
			}
		})
	}
}
