package receipt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var eventTime = time.Date(2026, 2, 12, 17, 42, 55, 0, time.UTC)

// wantEvent compares the receipts of one event.
func wantEvent(t *testing.T, event string, report Report, err error, want []Receipt) {
	t.Helper()
	checkReport(t, report, err)
	for i := range want {
		want[i].Push, want[i].Address, want[i].At = testPush, testAddress, eventTime
	}
	if diff := cmp.Diff(Report{Receipts: want}, report); diff != "" || err != nil {
		t.Errorf("%s: %v %s", event, err, diff)
	}
}

var sendgridKey = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })

func publicKey(key any) string {
	return base64.StdEncoding.EncodeToString(must(x509.MarshalPKIXPublicKey(key)))
}

func sendgridRequest(timestamp, body, signature string) Request {
	return Request{Body: []byte(body), Header: http.Header{"X-Twilio-Email-Event-Webhook-Signature": {signature}, "X-Twilio-Email-Event-Webhook-Timestamp": {timestamp}}}
}

func signSendGrid(body string) Request {
	sum := sha256.Sum256([]byte("1770918180" + body))
	return sendgridRequest("1770918180", body, base64.StdEncoding.EncodeToString(must(ecdsa.SignASN1(rand.Reader, sendgridKey(), sum[:]))))
}

// SendGrid's own verifier and ours agree on every request. SendGrid itself has signed two of them.
func TestSendGrid_OwnVerifier(t *testing.T) {
	valid, foreign := 0, 0
	for _, tt := range lines[struct {
		Key, Body, Signature, Timestamp string
		Valid                           bool
	}](t, "sendgrid.jsonl") {
		s, err := NewSendGrid(tt.Key)
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.Read(t.Context(), sendgridRequest(tt.Timestamp, tt.Body, tt.Signature))
		checkReport(t, report, err)
		if (err == nil) != tt.Valid {
			t.Errorf("%v: %+v", err, tt)
		}
		if tt.Valid {
			valid++
			foreign += report.Foreign
		}
	}
	if valid != 17 || foreign != 2 {
		t.Errorf("%d are valid, with %d of other messages", valid, foreign)
	}
}

func TestSendGrid_Events(t *testing.T) {
	s, err := NewSendGrid(publicKey(sendgridKey().Public()))
	if err != nil {
		t.Fatal(err)
	}
	const blocked = "the mail server refuses the message for now"
	for event, want := range map[string][]Receipt{
		`"event":"delivered"`: {{State: Delivered, Code: "delivered"}},
		`"event":"processed"`: nil, `"event":"deferred","response":"400 later"`: nil, `"event":"open"`: nil, `"event":"click"`: nil, `"event":"new"`: nil, `"x":1`: nil,
		`"event":"bounce","type":"bounce","status":"5.1.1","bounce_classification":"Invalid Address"`:     {{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.1", Reason: "the address is not valid or does not exist"}},
		`"event":"bounce","type":"bounce","status":"5.2.2","bounce_classification":"Mailbox Unavailable"`: {{State: Bounced, Code: "5.2.2", Reason: "the mailbox is full or cannot take it"}},
		`"event":"bounce","type":"bounce","bounce_classification":"Content"`:                              {{State: Bounced, Code: "bounce/Content", Reason: "the content was refused"}},
		`"event":"bounce","type":"bounce","status":"5.1.1","bounce_classification":"Unclassified"`:        {{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.1", Reason: "there is no such mailbox"}},
		`"event":"bounce","type":"bounce","reason":"550 5.1.1 anna@example.com: unknown"`:                 {{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.1", Reason: "there is no such mailbox"}},
		`"event":"bounce","type":"bounce","reason":"no such host","bounce_classification":"Unclassified"`: {{State: Bounced, Code: "bounce/Unclassified", Reason: "the mail server reports no reason"}},
		`"event":"bounce","type":"bounce","bounce_classification":"anna@example.com"`:                     {{State: Bounced, Reason: "the mail server reports no reason"}},
		`"event":"bounce","type":"bounce","bounce_classification":"` + strings.Repeat("x", maxCode) + `"`: {{State: Bounced, Reason: "the mail server reports no reason"}},
		`"event":"bounce","type":"blocked","status":"5.1.1","bounce_classification":"Invalid Address"`:    {{State: Bounced, Code: "5.1.1", Reason: blocked}},
		`"event":"dropped","reason":"Bounced Address"`:                                                    {{State: Bounced, Hard: true, Suppress: HardBounce, Code: "dropped/Bounced Address", Reason: "the address has bounced before, and is on the list of SendGrid"}},
		`"event":"dropped","reason":"Spam Reporting Address"`:                                             {{State: Undelivered, Suppress: Complaint, Code: "dropped/Spam Reporting Address", Reason: "the recipient has complained before"}},
		`"event":"dropped","reason":"Unsubscribed Address"`:                                               {{State: Undelivered, Unsubscribed: true, Code: "dropped/Unsubscribed Address", Reason: "the recipient has unsubscribed at SendGrid"}},
		`"event":"dropped","reason":"Spam Content, to anna@example.com"`:                                  {{State: Undelivered, Code: "dropped", Reason: "SendGrid did not send it"}},
		`"event":"spamreport"`:        {{State: Complained, Suppress: Complaint, Code: "spamreport", Reason: "the recipient has marked it as spam"}},
		`"event":"group_unsubscribe"`: {{Unsubscribed: true, Code: "group_unsubscribe", Reason: "the recipient has unsubscribed at SendGrid"}},
	} {
		body := `[{` + event + `,"email":"anna@example.com","timestamp":1770918175,"smtp-id":"<` + testPush.String() + `@example.com>"}]`
		report, err := s.Read(t.Context(), signSendGrid(body))
		wantEvent(t, event, report, err, want)
	}
	report, err := s.Read(t.Context(), signSendGrid(`[{"event":"spamreport","email":"anna@example.com","timestamp":1770918175,"push":"`+testPush.String()+`"},{"event":"delivered"},null,{"event":1}]`))
	if err != nil || len(report.Receipts) != 1 || report.Foreign != 1 {
		t.Errorf("%v %+v", err, report)
	}
}

func TestSendGrid_Refused(t *testing.T) {
	s, err := NewSendGrid("  " + publicKey(sendgridKey().Public()) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	right := signSendGrid(`[]`)
	for name, r := range map[string]Request{
		"nothing": {}, "an object": signSendGrid(`{"event":"delivered"}`), "broken JSON": signSendGrid(`[{`), "text": signSendGrid(`x`), "no body": signSendGrid(``),
		"too large":    signSendGrid("[" + strings.Repeat(" ", MaxBody) + "]"),
		"no signature": sendgridRequest("1770918180", "[]", ""), "no timestamp": sendgridRequest("", "[]", right.Header.Get("X-Twilio-Email-Event-Webhook-Signature")),
		"a signature that is not base64": sendgridRequest("1770918180", "[]", "%"),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := s.Read(t.Context(), r)
			checkRefused(t, report, err)
		})
	}
	for name, key := range map[string]string{
		"nothing": "", "no base64": "%", "nonsense": "AAAA", "RSA": publicKey(must(rsa.GenerateKey(rand.Reader, 2048)).Public()),
		"another curve": publicKey(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)).Public()),
	} {
		if _, err := NewSendGrid(key); err == nil {
			t.Errorf("%s is a key", name)
		}
	}
}

const mailgunKey = "signing-key-1"

func newTestMailgun(t testing.TB) *Mailgun {
	t.Helper()
	m, err := NewMailgun(mailgunKey)
	if err != nil {
		t.Fatal(err)
	}
	m.now = func() time.Time { return time.Unix(1770918200, 0) }
	return m
}

func signMailgun(key string, timestamp int64, event string) Request {
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%dtoken", timestamp)
	return Request{Body: fmt.Appendf(nil, `{"signature":{"timestamp":"%d","token":"token","signature":"%s"},"event-data":%s}`, timestamp, hex.EncodeToString(mac.Sum(nil)), event)}
}

// Another verifier and ours agree on every request.
func TestMailgun_OtherVerifier(t *testing.T) {
	valid := 0
	for _, tt := range lines[struct {
		Body  string
		Valid bool
	}](t, "mailgun.jsonl") {
		report, err := newTestMailgun(t).Read(t.Context(), Request{Body: []byte(tt.Body)})
		checkReport(t, report, err)
		if (err == nil) != tt.Valid {
			t.Errorf("%v: %+v", err, tt)
		}
		if tt.Valid {
			valid++
			if len(report.Receipts) != 1 || report.Receipts[0].Push != testPush || !report.Receipts[0].At.Equal(eventTime.Add(592*time.Millisecond)) {
				t.Errorf("%+v", report)
			}
		}
	}
	if valid != 4 {
		t.Errorf("%d are valid", valid)
	}
}

func TestMailgun_Events(t *testing.T) {
	hardly := Receipt{State: Bounced, Hard: true, Suppress: HardBounce}
	with := func(r Receipt, code, reason string) []Receipt { r.Code, r.Reason = code, reason; return []Receipt{r} }
	for event, want := range map[string][]Receipt{
		`"event":"delivered"`: with(Receipt{State: Delivered}, "delivered", ""), `"event":"accepted"`: nil, `"event":"opened"`: nil, `"x":1`: nil,
		`"event":"failed","severity":"temporary","reason":"generic","delivery-status":{"code":450}`: nil,
		`"event":"failed","reason":"bounce"`: nil,
		`"event":"failed","severity":"permanent","reason":"bounce","delivery-status":{"code":550,"enhanced-code":"5.5.0","bounce-type":"hard"}`: with(hardly, "5.5.0", "Mailgun calls the bounce hard"),
		`"event":"failed","severity":"permanent","reason":"bounce","delivery-status":{"code":552,"bounce-type":"soft"}`:                         with(Receipt{State: Bounced}, "failed", "Mailgun calls the bounce soft"),
		`"event":"failed","severity":"permanent","reason":"bounce","delivery-status":{"code":550,"message":"5.1.1 no such user"}`:               with(hardly, "5.1.1", "there is no such mailbox"),
		`"event":"failed","severity":"permanent","reason":"generic","delivery-status":{"code":550,"message":"anna@example.com"}`:                with(Receipt{State: Bounced}, "failed", "the mail server reports no reason"),
		`"event":"failed","severity":"permanent","reason":"suppress-bounce","delivery-status":{"code":605}`:                                     with(hardly, "failed/suppress-bounce", "the address has bounced before, and is on the list of Mailgun"),
		`"event":"failed","severity":"permanent","delivery-status":{"code":607}`:                                                                with(Receipt{State: Undelivered, Suppress: Complaint}, "failed/607", "the recipient has complained before"),
		`"event":"failed","severity":"permanent","reason":"suppress-unsubscribe"`:                                                               with(Receipt{State: Undelivered, Unsubscribed: true}, "failed/suppress-unsubscribe", "the recipient has unsubscribed at Mailgun"),
		`"event":"failed","severity":"permanent","reason":"old","delivery-status":{"code":602,"message":"Too old"}`:                             with(Receipt{State: Bounced}, "failed/old", "it could not be delivered in time"),
		`"event":"complained"`:                       with(Receipt{State: Complained, Suppress: Complaint}, "complained", "the recipient has marked it as spam"),
		`"event":"unsubscribed"`:                     with(Receipt{Unsubscribed: true}, "unsubscribed", "the recipient has unsubscribed at Mailgun"),
		`"event":"rejected","reject":{"reason":"x"}`: with(Receipt{State: Undelivered}, "rejected", "Mailgun did not send it"),
	} {
		body := `{` + event + `,"recipient":"anna@example.com","timestamp":1770918175.0,"message":{"headers":{"message-id":"` + testPush.String() + `@example.com"}},"user-variables":[]}`
		report, err := newTestMailgun(t).Read(t.Context(), signMailgun(mailgunKey, 1770918180, body))
		wantEvent(t, event, report, err, want)
	}
	for _, headers := range []string{`{"message-id":"20260203192638.000be97f99f8cea1@sample.mailgun.com"}`, `{}`, `[]`, `null`} {
		report, err := newTestMailgun(t).Read(t.Context(), signMailgun(mailgunKey, 1770918180, `{"event":"delivered","message":{"headers":`+headers+`}}`))
		if err != nil || report.Foreign != 1 || len(report.Receipts) != 0 {
			t.Errorf("%s: %v %+v", headers, err, report)
		}
	}
}

// Mailgun signs no event, so an old signature is refused: it could be of a request that was read by others.
func TestMailgun_Refused(t *testing.T) {
	const delivered, day = `{"event":"delivered"}`, 24 * 60 * 60
	for name, r := range map[string]Request{
		"nothing": {}, "text": {Body: []byte("x")}, "an array": {Body: []byte("[]")}, "an object": {Body: []byte("{}")},
		"by another key": signMailgun("another", 1770918180, delivered), "by no key": signMailgun("", 1770918180, delivered),
		"old": signMailgun(mailgunKey, 1770918200-day-1, delivered), "of the future": signMailgun(mailgunKey, 1770918200+day+1, delivered),
		"of the year 0": signMailgun(mailgunKey, -62135596800, delivered), "of the end of time": signMailgun(mailgunKey, 1<<62, delivered),
		"too large": signMailgun(mailgunKey, 1770918180, `"`+strings.Repeat("x", MaxBody)+`"`),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := newTestMailgun(t).Read(t.Context(), r)
			checkRefused(t, report, err)
		})
	}
	if _, err := newTestMailgun(t).Read(t.Context(), signMailgun(mailgunKey, 1770918200-day, delivered)); err != nil {
		t.Errorf("a day later: %v", err)
	}
	if _, err := NewMailgun(""); err == nil {
		t.Error("an empty key is accepted")
	}
}

// FuzzSendGrid holds that an unsigned request yields nothing, and that a signed one keeps what the types promise.
func FuzzSendGrid(f *testing.F) {
	for _, line := range lines[struct{ Body, Signature, Timestamp string }](f, "sendgrid.jsonl") {
		f.Add(line.Timestamp, line.Body, line.Signature)
	}
	s, err := NewSendGrid(publicKey(sendgridKey().Public()))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, timestamp, body, signature string) {
		report, err := s.Read(t.Context(), sendgridRequest(timestamp, body, signature))
		checkRefused(t, report, err)
		report, err = s.Read(t.Context(), signSendGrid(body))
		checkReport(t, report, err)
	})
}

// FuzzMailgun holds that an unsigned request yields nothing, and that a signed one keeps what the types promise.
func FuzzMailgun(f *testing.F) {
	for _, line := range lines[struct{ Body string }](f, "mailgun.jsonl") {
		f.Add([]byte(line.Body), `{"event":"failed","severity":"permanent"}`)
	}
	m, another := newTestMailgun(f), newTestMailgun(f)
	another.key = []byte("another key")
	f.Fuzz(func(t *testing.T, body []byte, event string) {
		report, err := another.Read(t.Context(), Request{Body: body})
		checkRefused(t, report, err)
		report, err = m.Read(t.Context(), signMailgun(mailgunKey, 1770918180, event))
		checkReport(t, report, err)
	})
}
