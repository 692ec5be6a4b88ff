package channel

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/address"
)

// FuzzEmail holds that whatever passes the check becomes an e-mail to that address alone, with its title to the letter,
// and the headers that we write and no others.
func FuzzEmail(f *testing.F) {
	f.Add("anna@example.com", "Sale", "Now")
	f.Add("Änne <anna@bücher.example>", "Sale", "Now")
	f.Add("a@b\r\nBcc: c@d", "a\r\nBcc: c@d", "\r\n.\r\nQUIT\r\n")
	f.Add("a@[127.0.0.1]", "=?utf-8?q?=0D=0ABcc:_c@d?=", "\x00\xff")
	f.Add("<a@b>", "æ\u2028Bcc: c@d", "")
	e := fuzzedEmail(f)
	headers := []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To", "X-Sendquota-Push"}
	f.Fuzz(func(t *testing.T, to, title, body string) {
		p := testPush()
		p.To = to
		p.Message, _ = json.Marshal(map[string]string{"title": title, "body": body, "html": body})
		if len(e.Check(p.To, p.Message)) > 0 {
			return
		}
		text := mailOf(t, e, p).text
		m, err := netmail.ReadMessage(strings.NewReader(string(text)))
		if err != nil {
			t.Fatalf("%v:\n%q", err, text)
		}
		want, _ := address.Parse(to)
		if got, err := m.Header.AddressList("To"); err != nil || len(got) != 1 || *got[0] != want {
			t.Errorf("to %q it goes to %v (%v)", to, got, err)
		}
		title = open(p.Message).text("title")
		if got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil || got != title {
			t.Errorf("the title %q arrives as %q (%v)", title, got, err)
		}
		for name, values := range m.Header {
			if len(values) != 1 || !slices.Contains(headers, name) {
				t.Errorf("the header %s: %q", name, values)
			}
		}
		checkHead(t, text)
	})
}

func fuzzedEmail(f *testing.F) *Email {
	e, err := NewEmail(EmailConfig{Connection: testConnection(0), Host: "h", From: "Shop <shop@example.com>", AllowedFrom: []string{"Help <help@example.com>"}})
	if err != nil {
		f.Fatal(err)
	}
	return e
}

// checkHead holds the lines of a mail's head to RFC 5322.
func checkHead(t *testing.T, text []byte) {
	t.Helper()
	head, _, _ := strings.Cut(string(text), "\r\n\r\n")
	for line := range strings.SplitSeq(head, "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") || strings.TrimSpace(line) == "" {
			t.Errorf("a line of the head: %q", line)
		}
	}
}

// FuzzEmail_Members holds that a mail with further members has the headers, the copies and the attachment that the message
// names, and no others; that hidden copies are in the envelope alone; and that no fault quotes a value in its text.
func FuzzEmail_Members(f *testing.F) {
	f.Add("X-Shop", "a b", "Ben <ben@example.com>", "c@d.example", "help@example.com", "a.pdf", "application/pdf", "AAAA")
	f.Add("Bcc", "x@y", "a@b, c@d", "c@d\r\nX: y", "evil@example.com", "../../x", "multipart/mixed", "A")
	f.Add("X\r\nBcc", "a\r\nBcc: c@d", "", "", "", "a\r\nb\".txt", "text/plain; charset=\"a\r\nb\"", "AA==")
	f.Add("x-y", "=?utf-8?q?=0D=0ABcc:_c@d?=", "Ä <a@bücher.example>", "a@b", "Help <HELP@example.com>", "Ä ö.txt", "text/plain; charset=utf-8", "4pyT")
	e := fuzzedEmail(f)
	f.Fuzz(func(t *testing.T, name, value, cc, bcc, from, file, media, content string) {
		for _, text := range []*string{&name, &value, &cc, &bcc, &from, &file, &media, &content} {
			raw, _ := json.Marshal(*text) // as JSON carries it
			_ = json.Unmarshal(raw, text)
		}
		p := testPush()
		p.To = testMailbox
		p.Message, _ = json.Marshal(map[string]any{
			"body": "x", "headers": map[string]string{name: value}, "cc": []string{cc}, "bcc": bcc, "from": from, "reply_to": []string{cc},
			"attachments": []map[string]string{{"name": file, "type": media, "content": content}},
		})
		if bad := e.Check(p.To, p.Message); len(bad) > 0 {
			for _, one := range bad {
				if long := len(content) > 8 && strings.Contains(one.Message, content); long || !strings.HasPrefix(one.Field, "message.") {
					t.Errorf("%+v", one)
				}
			}
			return
		}
		mail := mailOf(t, e, p)
		for i, to := range mail.to {
			if a, err := address.Parse(to); err != nil || a.Address != to || slices.Contains(mail.to[:i], to) {
				t.Errorf("the envelope %q", mail.to)
			}
		}
		m, err := netmail.ReadMessage(strings.NewReader(string(mail.text)))
		if err != nil {
			t.Fatalf("%v:\n%q", err, mail.text)
		}
		checkHead(t, mail.text)
		hidden, _ := address.Parse(bcc)
		if len(m.Header) != 11 || m.Header["Bcc"] != nil || !slices.Contains(mail.to, hidden.Address) || !slices.Contains([]string{"shop@example.com", "help@example.com"}, mail.from) {
			t.Errorf("%q from %s to %q", m.Header, mail.from, mail.to)
		}
		if got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get(name)); err != nil || got != value {
			t.Errorf("the header %s: %q arrives as %q (%v)", name, value, got, err)
		}
		checkAttachment(t, m, file, content)
	})
}

// checkAttachment holds a mail to one attachment.
func checkAttachment(t *testing.T, m *netmail.Message, file, content string) {
	t.Helper()
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	if _, err := parts.NextPart(); err != nil {
		t.Fatal(err)
	}
	part, err := parts.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, part))
	want, _ := base64.StdEncoding.DecodeString(content)
	kind, named, wrong := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || wrong != nil || string(got) != string(want) || kind != "attachment" || named["filename"] != file || len(part.Header) != 3 {
		t.Errorf("%q: %q (%v, %v)", part.Header, got, err, wrong)
	}
	if _, err := parts.NextPart(); err != io.EOF {
		t.Errorf("another part: %v", err)
	}
}
