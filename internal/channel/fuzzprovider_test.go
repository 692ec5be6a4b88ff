package channel

import (
	"encoding/json"
	"mime"
	"net/http"
	netmail "net/mail"
	"strings"
	"testing"
	"unicode"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// FuzzProviderAnswers holds that no body of an answer breaks a channel, nor
// gets into the reason of a failure.
func FuzzProviderAnswers(f *testing.F) {
	for _, body := range []string{"", "{}", "[]", `{"code":21211}`, `{"code":"x","sid":1}`, `{"reason":"Unregistered"}`, fcmError("NOT_FOUND", "UNREGISTERED"), `{"error":{"details":[null,1]}}`, `{"name":"\u0000"}`} {
		f.Add(200, body)
		f.Add(400, body)
		f.Add(410, body)
	}
	providers := []struct {
		read  func(outbound.Answer) (id, code string)
		codes map[string]meaning
	}{{twilioAnswer, twilioCodes()}, {fcmAnswer, fcmCodes()}, {apnsAnswer, apnsReasons()}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := outbound.Answer{Status: status, Header: http.Header{}, Body: []byte(body)}
		for _, provider := range providers {
			plain := classify(a, testNow())
			id, code := provider.read(a)
			r := plain.refined(id, code, provider.codes)
			byCode := plain.Outcome == push.Unknown && r.Outcome == push.Refused && strings.Contains(r.Error, plain.Error+", ")
			if r.Outcome != plain.Outcome && !byCode || r.Unregistered && !r.Final || r.Final && r.Outcome != push.Refused {
				t.Errorf("%+v, by its status %+v", r, plain)
			}
			if len(r.Error) > maxError || len(r.ProviderMessageID) > maxProviderID || strings.ContainsFunc(r.Error+r.ProviderMessageID, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Errorf("%+v", r)
			}
			if rest := strings.TrimPrefix(r.Error, "unregistered: "); !strings.HasPrefix(rest, plain.Error) {
				t.Errorf("the reason is %q, by the status it is %q", r.Error, plain.Error)
			}
		}
	})
}

// FuzzEmail holds that whatever passes the check becomes an e-mail to that
// address alone, with its title to the letter, and the headers that we write and
// no others.
func FuzzEmail(f *testing.F) {
	f.Add("anna@example.com", "Sale", "Now")
	f.Add("a@b\r\nBcc: c@d", "a\r\nBcc: c@d", "\r\n.\r\nQUIT\r\n")
	f.Add("a@[127.0.0.1]", "=?utf-8?q?=0D=0ABcc:_c@d?=", "\x00\xff")
	f.Add("<a@b>", "æ\u2028Bcc: c@d", "")
	e, err := NewEmail(EmailConfig{Connection: testConnection(0), Host: "h", From: "Shop <shop@example.com>"})
	if err != nil {
		f.Fatal(err)
	}
	headers := []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}
	f.Fuzz(func(t *testing.T, to, title, body string) {
		p := testPush()
		p.To = to
		p.Message, _ = json.Marshal(map[string]string{"title": title, "body": body, "html": body})
		if len(e.Check(p.To, p.Message)) > 0 {
			return
		}
		text, err := e.compose(p)
		if err != nil {
			t.Fatalf("it passed the check, and cannot be written: %v", err)
		}
		m, err := netmail.ReadMessage(strings.NewReader(string(text)))
		if err != nil {
			t.Fatalf("%v:\n%q", err, text)
		}
		if got, err := m.Header.AddressList("To"); err != nil || len(got) != 1 || got[0].Address != to {
			t.Errorf("to %q it goes to %v (%v)", to, got, err)
		}
		want := open(p.Message).text("title")
		if got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil || got != want {
			t.Errorf("the title %q arrives as %q (%v)", want, got, err)
		}
		for name, values := range m.Header {
			if len(values) != 1 || !strings.Contains(strings.Join(headers, " ")+" ", name+" ") {
				t.Errorf("the header %s: %q", name, values)
			}
		}
		head, _, _ := strings.Cut(string(text), "\r\n\r\n")
		for line := range strings.SplitSeq(head, "\r\n") {
			if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") {
				t.Errorf("a line of the head: %q", line)
			}
		}
	})
}
