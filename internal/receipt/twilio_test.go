package receipt

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	twilioToken = "0123456789abcdef0123456789abcdef"
	twilioURL   = "https://sq.example.com/callbacks/tok_1"
)

// signTwilio signs as Twilio does.
func signTwilio(token, to string, values url.Values) Request {
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(to))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		mac.Write([]byte(name + values.Get(name)))
	}
	return form(to, values.Encode(), base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// Twilio's own verifier and ours agree on every request.
func TestTwilio_OwnVerifier(t *testing.T) {
	valid := 0
	for _, tt := range lines[struct {
		URL, Body, Signature string
		Valid                bool
	}](t, "twilio.jsonl") {
		report, err := NewTwilio("another token", twilioToken).Read(t.Context(), form(tt.URL, tt.Body, tt.Signature))
		checkReport(t, report, err)
		if (err == nil) != tt.Valid {
			t.Errorf("%s %s: %v", tt.URL, tt.Body, err)
		}
		if tt.Valid {
			valid++
		}
	}
	if valid < 100 {
		t.Errorf("%d requests are valid", valid)
	}
}

func TestTwilio_Status(t *testing.T) {
	receipt := func(change func(*Receipt)) *Receipt {
		r := Receipt{Push: testPush, Attempt: 2, Address: testNumber}
		change(&r)
		return &r
	}
	for _, tt := range []struct {
		status, code string
		want         *Receipt
	}{
		{"queued", "", nil}, {"sending", "", nil}, {"sent", "", nil}, {"accepted", "", nil}, {"scheduled", "", nil}, {"new", "", nil},
		{"delivered", "", receipt(func(r *Receipt) { r.State = Delivered })},
		{"read", "", receipt(func(r *Receipt) { r.State = Delivered })},
		{"delivered", "30005", receipt(func(r *Receipt) { r.State = Delivered })},
		{"undelivered", "", receipt(func(r *Receipt) { r.State, r.Reason = Undelivered, "the carrier did not deliver it" })},
		{"failed", "0", receipt(func(r *Receipt) { r.State, r.Reason = Undelivered, "Twilio did not send it" })},
		{"undelivered", "30008", receipt(func(r *Receipt) { r.State, r.Code, r.Reason = Undelivered, "30008", "the carrier reports no reason" })},
		{"undelivered", "39999", receipt(func(r *Receipt) { r.State, r.Code, r.Reason = Undelivered, "39999", "the carrier did not deliver it" })},
		{"undelivered", "call " + testAddress, receipt(func(r *Receipt) { r.State, r.Reason = Undelivered, "the carrier did not deliver it" })},
		{"undelivered", "30003", receipt(func(r *Receipt) {
			r.State, r.Code, r.Reason = Bounced, "30003", "the handset cannot be reached at present"
		})},
		{"undelivered", "30005", receipt(func(r *Receipt) {
			r.State, r.Hard, r.Suppress, r.Code, r.Reason = Bounced, true, HardBounce, "30005", "the number is not in use"
		})},
		{"failed", "21610", receipt(func(r *Receipt) {
			r.State, r.Suppress, r.Code, r.Reason = Undelivered, Stop, "21610", "the recipient has unsubscribed from this sender"
		})},
	} {
		values := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {tt.status}, "SmsStatus": {tt.status}, "ErrorCode": {tt.code}, "To": {testNumber}, "From": {"+4512345678"}, "Body": {"STOP"}}
		report, err := NewTwilio(twilioToken).Read(t.Context(), signTwilio(twilioToken, Callback(twilioURL, testPush, 2), values))
		checkReport(t, report, err)
		var want Report
		if tt.want != nil {
			want.Receipts = []Receipt{*tt.want}
		}
		if diff := cmp.Diff(want, report); diff != "" || err != nil {
			t.Errorf("%s %s: %v %s", tt.status, tt.code, err, diff)
		}
	}
}

// A push is read from the signed URL only. A message without one, or with nonsense, is not ours.
func TestTwilio_Push(t *testing.T) {
	for _, tt := range []struct {
		query            string
		attempt, foreign int
	}{
		{"?push=" + testPush.String() + "&attempt=7", 7, 0},
		{"?push=" + testPush.String(), 0, 0},
		{"?push=" + testPush.String() + "&attempt=-1", 0, 0},
		{"?push=" + testPush.String() + "&attempt=99999999999999999999", 0, 0},
		{"", 0, 1}, {"?push=", 0, 1}, {"?push=1", 0, 1}, {"?attempt=3", 0, 1}, {"?push={" + testPush.String() + "}", 0, 1},
	} {
		values := url.Values{"MessageStatus": {"delivered"}, "push": {testPush.String()}, "attempt": {"3"}}
		report, err := NewTwilio(twilioToken).Read(t.Context(), signTwilio(twilioToken, twilioURL+tt.query, values))
		if err != nil || report.Foreign != tt.foreign || len(report.Receipts) != 1-tt.foreign {
			t.Errorf("%q: %v %+v", tt.query, err, report)
		}
		for _, r := range report.Receipts {
			if r.Push != testPush || r.Attempt != tt.attempt {
				t.Errorf("%q: %+v", tt.query, r)
			}
		}
	}
}

func TestTwilio_Refused(t *testing.T) {
	values := url.Values{"MessageStatus": {"delivered"}}
	right := signTwilio(twilioToken, Callback(twilioURL, testPush, 1), values)
	change := func(f func(*Request)) Request {
		r := Request{right.URL, right.Header.Clone(), slices.Clone(right.Body)}
		f(&r)
		return r
	}
	for name, r := range map[string]Request{
		"no signature":         change(func(r *Request) { r.Header.Del("X-Twilio-Signature") }),
		"by another token":     signTwilio("another", right.URL, values),
		"by an empty token":    signTwilio("", right.URL, values),
		"of another URL":       change(func(r *Request) { r.URL = Callback(twilioURL, testPush, 2) }),
		"of another host":      change(func(r *Request) { r.URL = strings.Replace(r.URL, "sq.", "q.", 1) }),
		"of another form":      change(func(r *Request) { r.Body = []byte("MessageStatus=failed") }),
		"a broken form":        change(func(r *Request) { r.Body = []byte("MessageStatus=%zz") }),
		"JSON":                 change(func(r *Request) { r.Header.Set("Content-Type", "application/json") }),
		"no content type":      change(func(r *Request) { r.Header.Del("Content-Type") }),
		"no URL":               signTwilio(twilioToken, "", values),
		"a URL without a host": signTwilio(twilioToken, "/callbacks/tok_1", values),
		"too large":            signTwilio(twilioToken, right.URL, url.Values{"MessageStatus": {strings.Repeat("x", MaxBody)}}),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := NewTwilio("", twilioToken).Read(t.Context(), r)
			checkRefused(t, report, err)
		})
	}
	if report, err := NewTwilio("", twilioToken).Read(t.Context(), right); err != nil || len(report.Receipts) != 1 {
		t.Errorf("the right request: %v %+v", err, report)
	}
	report, err := NewTwilio("").Read(t.Context(), signTwilio("", right.URL, values))
	checkRefused(t, report, err)
}

func TestTwilio_Inbound(t *testing.T) {
	for _, tt := range []struct {
		text, optOut string
		want         Keyword
	}{
		{"STOP", "", StopKeyword}, {"stopall", "", StopKeyword}, {"Unsubscribe", "", StopKeyword}, {"CANCEL", "", StopKeyword}, {"END", "", StopKeyword},
		{"quit", "", StopKeyword}, {"REVOKE", "", StopKeyword}, {"optout", "", StopKeyword}, {"Stop.", "", StopKeyword}, {"  stop . ", "", StopKeyword}, {"STOP\r\n", "", StopKeyword},
		{"START", "", StartKeyword}, {"yes", "", StartKeyword}, {"Unstop.", "", StartKeyword}, {"HELP", "", HelpKeyword}, {"info", "", HelpKeyword},
		{"please stop", "", NoKeyword}, {"STOP it", "", NoKeyword}, {"", "", NoKeyword}, {"...", "", NoKeyword}, {"stopp", "", NoKeyword}, {"\"STOP\"", "", NoKeyword},
		{"arrêt", "STOP", StopKeyword}, {"commencer", "START", StartKeyword}, {"aide", "HELP", HelpKeyword}, {"", "stop", StopKeyword}, {"STOP", "other", StopKeyword},
	} {
		values := url.Values{"MessageSid": {"SM9"}, "SmsStatus": {"received"}, "From": {testNumber}, "To": {"+4512345678"}, "Body": {tt.text}}
		if tt.optOut != "" {
			values.Set("OptOutType", tt.optOut)
		}
		report, err := NewTwilio(twilioToken).Read(t.Context(), signTwilio(twilioToken, twilioURL, values))
		want := Report{Inbound: &Inbound{ID: "SM9", From: testNumber, To: "+4512345678", Text: tt.text, Keyword: tt.want}}
		if diff := cmp.Diff(want, report); diff != "" || err != nil {
			t.Errorf("%q %q: %v %s", tt.text, tt.optOut, err, diff)
		}
	}
}

// FuzzTwilio holds that a request without Twilio's signature yields nothing, and that a signed one keeps what the types
// promise.
func FuzzTwilio(f *testing.F) {
	for _, line := range lines[struct{ URL, Body, Signature string }](f, "twilio.jsonl")[:20] {
		f.Add(line.URL, line.Body, line.Signature)
	}
	f.Add("://", "a=%", "")
	f.Add("https://[::1/?push=", "Body&From=1", "x")
	reader := NewTwilio(twilioToken)
	f.Fuzz(func(t *testing.T, to, body, signature string) {
		report, err := NewTwilio("another").Read(t.Context(), form(to, body, signature))
		checkRefused(t, report, err)
		report, err = reader.Read(t.Context(), form(to, body, signature))
		checkReport(t, report, err)
		if values, wrong := url.ParseQuery(body); wrong == nil {
			report, err = reader.Read(t.Context(), signTwilio(twilioToken, to, values))
			checkReport(t, report, err)
		}
	})
}
