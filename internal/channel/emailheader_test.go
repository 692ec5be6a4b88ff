package channel

import (
	"cmp"
	"encoding/json"
	"mime"
	netmail "net/mail"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// A title and a name arrive to the letter, also when they look like encoded words. Go's own parser reads them
// here; testdata has what another one read.
func TestEmail_Headers(t *testing.T) {
	var recorded struct {
		Read []struct{ Title, Name, Head, Subject, From, ReplyTo string }
	}
	text, err := os.ReadFile("testdata/mailparser.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &recorded); err != nil || len(recorded.Read) < 20 {
		t.Fatalf("%d: %v", len(recorded.Read), err)
	}
	for _, r := range recorded.Read {
		if r.Subject != r.Title || r.From != r.Name || r.ReplyTo != r.Name {
			t.Errorf("mailparser read %q, %q and %q", r.Subject, r.From, r.ReplyTo)
		}
		e, err := NewEmail(EmailConfig{Connection: testConnection(0), Host: "h", From: "shop@example.com", ReplyTo: "help@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		e.from.Name, e.replyTo.Name = r.Name, r.Name
		raw := composed(t, e, r.Title)
		if head := linesOf(raw, "From:", "Reply-To:", "Subject:"); head != r.Head {
			t.Errorf("%q is written\n%s\nmailparser was given\n%s", r.Title, head, r.Head)
		}
		m, err := netmail.ReadMessage(strings.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); subject != r.Title || err != nil {
			t.Errorf("%q arrives as %q (%v)", r.Title, subject, err)
		}
		for name, address := range map[string]string{"From": "shop@example.com", "Reply-To": "help@example.com"} {
			if list, err := m.Header.AddressList(name); err != nil || len(list) != 1 || *list[0] != (netmail.Address{Name: r.Name, Address: address}) {
				t.Errorf("%s of %q arrives as %v (%v)", name, r.Name, list, err)
			}
		}
	}
}

func composed(t testing.TB, e *Email, title string) string {
	p := testPush()
	p.To = testMailbox
	p.Message, _ = json.Marshal(map[string]string{"title": title, "body": "x"})
	if faults := e.Check(p.To, p.Message); len(faults) > 0 {
		t.Fatalf("%q: %v", title, faults)
	}
	return string(mailOf(t, e, p).text)
}

// mailOf returns the e-mail that is made from a push.
func mailOf(t testing.TB, e *Email, p push.Push) outgoing {
	t.Helper()
	in, bad := e.members(p.To, p.Message)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	mail, err := e.compose(p, in)
	if err != nil {
		t.Fatalf("it passed the check, and cannot be written: %v", err)
	}
	return mail
}

// linesOf returns the headers that begin so, folded as they are, in order.
func linesOf(raw string, begins ...string) string {
	head, _, _ := strings.Cut(raw, "\r\n\r\n")
	var found []string
	for line := range strings.SplitSeq(strings.ReplaceAll(head, "\r\n ", "\n "), "\r\n") {
		if slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
			found = append(found, strings.ReplaceAll(line, "\n ", "\r\n "))
		}
	}
	slices.SortFunc(found, cmp.Compare[string])
	return strings.Join(found, "\r\n")
}
