package channel

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/sms"
)

func newTestSMS(t testing.TB, cfg SMSConfig) *SMS {
	t.Helper()
	cfg.AccountSID, cfg.Password = "AC0123", markPassword
	if cfg.MessagingServiceSID == "" {
		cfg.From = "+4511111111"
	}
	s, err := NewSMS(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

func smsPush() push.Push {
	p := testPush()
	p.To, p.Message = markNumber, json.RawMessage(`{"title":"not sent","body":"Sale & more: 50% æ"}`)
	return p
}

// The request equals the one in Twilio's documentation.
func TestSMS_Request(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     SMSConfig
		expires time.Time
		want    url.Values
	}{
		{"from a number", SMSConfig{}, time.Time{}, url.Values{"From": {"+4511111111"}}},
		{"from a service", SMSConfig{MessagingServiceSID: "MG1"}, time.Time{}, url.Values{"MessagingServiceSid": {"MG1"}}},
		{"with a callback", SMSConfig{StatusCallback: "https://x.test/status"}, time.Time{}, url.Values{"From": {"+4511111111"}, "StatusCallback": {"https://x.test/status"}}},
		{"expires soon", SMSConfig{}, testNow().Add(90 * time.Second), url.Values{"From": {"+4511111111"}, "ValidityPeriod": {"90"}}},
		{"expires at once", SMSConfig{}, testNow().Add(time.Millisecond), url.Values{"From": {"+4511111111"}, "ValidityPeriod": {"1"}}},
		{"expires late", SMSConfig{}, testNow().Add(10 * time.Hour), url.Values{"From": {"+4511111111"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			provider := newProvider(t, answers(201, `{"sid":"SM42","status":"queued","error_code":null}`))
			tt.cfg.Connection, tt.cfg.BaseURL = testConnection(0), provider.url()+"/"
			p := smsPush()
			p.ExpiresAt = tt.expires
			got := newTestSMS(t, tt.cfg).Send(t.Context(), p, 2)
			if diff := cmp.Diff(Result{Outcome: push.Delivered, ProviderMessageID: "SM42"}, got, notWhen); diff != "" || got.Handed.IsZero() || got.Segments != 1 {
				t.Errorf("handed %s, %d segments, result (-want +got):\n%s", got.Handed, got.Segments, diff)
			}
			requests, _ := provider.seen()
			r := requests[0]
			if got := r.Method + " " + r.RequestURI; got != "POST /2010-04-01/Accounts/AC0123/Messages.json" {
				t.Errorf("request line %q", got)
			}
			if user, password, _ := r.BasicAuth(); user != "AC0123" || password != markPassword {
				t.Errorf("signed in as %q with %q", user, password)
			}
			if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.Header.Get("I-Twilio-Idempotency-Token") != p.ID.String() {
				t.Errorf("headers %v", r.Header)
			}
			form, err := url.ParseQuery(string(r.body))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Set("To", markNumber)
			tt.want.Set("Body", "Sale & more: 50% æ")
			if diff := cmp.Diff(tt.want, form); diff != "" {
				t.Errorf("form (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSMS_Size checks the size of a text, as it is sent and as a set of channels returns it.
func TestSMS_Size(t *testing.T) {
	text := json.RawMessage(`{"title":"😀","body":"` + strings.Repeat("a", 159) + `\ud83d\ude00"}`)
	want := sms.Size{Encoding: sms.UCS2, Characters: 160, Segments: 3}
	provider := newProvider(t, answers(201, `{"sid":"SM42"}`))
	c := newTestSMS(t, SMSConfig{Connection: testConnection(0), BaseURL: provider.url()})
	p := smsPush()
	p.Message = text
	if got := c.Send(t.Context(), p, 1); got.Segments != 3 {
		t.Errorf("%d segments were sent", got.Segments)
	}
	set, err := NewSet(Entry{Name: "text", Channel: c, Retry: push.Retry{MaxAttempts: 1}}, entry("log"))
	if err != nil {
		t.Fatal(err)
	}
	if got, is := set.Size("text", text); got != want || !is {
		t.Errorf("%+v, %t", got, is)
	}
	for _, name := range []string{"log", "none"} {
		if got, is := set.Size(name, text); is {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A half of a surrogate pair is sent as U+FFFD.
	if got, _ := set.Size("text", json.RawMessage(`{"body":"\ud83d"}`)); got != (sms.Size{Encoding: sms.UCS2, Characters: 1, Segments: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestSMS_APIKey(t *testing.T) {
	provider := newProvider(t, answers(201, "{}"))
	newTestSMS(t, SMSConfig{Connection: testConnection(0), BaseURL: provider.url(), User: "SK1"}).Send(t.Context(), smsPush(), 1)
	requests, _ := provider.seen()
	if user, _, _ := requests[0].BasicAuth(); user != "SK1" || !strings.Contains(requests[0].RequestURI, "/AC0123/") {
		t.Errorf("signed in as %q at %s", user, requests[0].RequestURI)
	}
}

// The code determines whether a refusal is permanent, not the status.
func TestSMS_Errors(t *testing.T) {
	for _, tt := range []struct {
		status, code int
		headers      []string
		want         Result
	}{
		{400, 21211, nil, Result{Outcome: push.Refused, Final: true, Unregistered: true, OneAddress: true, Error: "unregistered: the provider answered 400 Bad Request, 21211: not a valid telephone number"}},
		{400, 21610, nil, Result{Outcome: push.Refused, Final: true, Stopped: true, OneAddress: true, Error: "the provider answered 400 Bad Request, 21610: the recipient has unsubscribed from this sender"}},
		{400, 21617, nil, Result{Outcome: push.Refused, Final: true, Error: "the provider answered 400 Bad Request, 21617: the text is too long"}},
		{400, 21606, nil, Result{Outcome: push.Refused, Error: "the provider answered 400 Bad Request, 21606: the sender cannot send messages"}},
		{400, 99999, nil, Result{Outcome: push.Refused, Error: "the provider answered 400 Bad Request"}},
		{400, 0, nil, Result{Outcome: push.Refused, Error: "the provider answered 400 Bad Request"}},
		{401, 20003, nil, Result{Outcome: push.Refused, Error: "the provider answered 401 Unauthorized, 20003: the credentials are not valid"}},
		{403, 21408, nil, Result{Outcome: push.Refused, Error: "the provider answered 403 Forbidden, 21408: the account may not send to this region"}},
		{429, 20429, []string{"Retry-After: 7"}, Result{Outcome: push.Refused, RetryAfter: 7 * time.Second, Error: "the provider answered 429 Too Many Requests, 20429: too many requests"}},
		{429, 14107, nil, Result{Outcome: push.Refused, OneAddress: true, Error: "the provider answered 429 Too Many Requests, 14107: too many messages to this number"}},
		{500, 21211, nil, Result{Outcome: push.Unknown, Error: "the provider answered 500 Internal Server Error"}},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.code), func(t *testing.T) {
			body := fmt.Sprintf(`{"code":%d,"message":"The number %s is wrong","more_info":"%s","status":%d}`, tt.code, markNumber, markMessage, tt.status)
			provider := newProvider(t, answers(tt.status, body, tt.headers...))
			got := newTestSMS(t, SMSConfig{Connection: testConnection(0), BaseURL: provider.url()}).Send(t.Context(), smsPush(), 1)
			if diff := cmp.Diff(tt.want, got, notWhen); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSMS_CodeAsText: a code that is text is the number, and so is one that comes in pieces, a while after the head.
func TestSMS_CodeAsText(t *testing.T) {
	t.Parallel()
	const body = `{"code": "21610", "message": "no"}`
	late := func(conn *net.TCPConn, _ received, _ <-chan struct{}) bool {
		fmt.Fprintf(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n", len(body))
		for _, piece := range []string{body[:12], body[12:]} {
			time.Sleep(700 * time.Millisecond) // longer in all than what a success has for its body
			_, _ = conn.Write([]byte(piece))
		}
		return true
	}
	for name, b := range map[string]behavior{"at once": answers(400, body), "late": late} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := newProvider(t, b)
			got := newTestSMS(t, SMSConfig{Connection: testConnection(ample), BaseURL: provider.url()}).Send(t.Context(), smsPush(), 1)
			if !got.Final || !strings.Contains(got.Error, "21610: the recipient has unsubscribed") {
				t.Errorf("%+v", got)
			}
		})
	}
}
