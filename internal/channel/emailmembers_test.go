package channel

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// TestEmail_Faults: every fault of a message is reported at once, with its place.
func TestEmail_Faults(t *testing.T) {
	t.Parallel()
	e := sendingEmail(t, EmailConfig{AllowedFrom: []string{"Help <help@example.com>"}})
	encoded := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, tt := range []struct {
		members string
		want    []string // the fields, with their values
	}{
		{`"headers":{"X-Shop":"a","Precedence":"bulk","In-Reply-To":"<a@b>"}`, nil},
		{`"headers":null,"cc":null,"bcc":null,"reply_to":null,"from":null,"attachments":null`, nil},
		{`"headers":{},"cc":[],"bcc":[],"attachments":[]`, nil},
		{`"headers":[]`, []string{"message.headers"}},
		{`"headers":"x"`, []string{"message.headers"}},
		{`"headers":{"Bcc":"a@b","bCC":"a","From":"a","TO":"a","Cc":"a","Reply-To":"a","Subject":"a","Date":"a"}`, []string{
			"message.headers.Bcc", "message.headers.Cc", "message.headers.Date", "message.headers.From", "message.headers.Reply-To", "message.headers.Subject", "message.headers.TO", "message.headers.bCC",
		}},
		{`"headers":{"Message-ID":"a","MIME-Version":"a","Content-Type":"a","Content-Language":"a","Return-Path":"a","Received":"a","DKIM-Signature":"a","List-Unsubscribe":"a","List-Unsubscribe-Post":"a","Auto-Submitted":"no","Sender":"a","X-Sendquota-Push":"a"}`, []string{
			"message.headers.Auto-Submitted", "message.headers.Content-Language", "message.headers.Content-Type", "message.headers.DKIM-Signature", "message.headers.List-Unsubscribe",
			"message.headers.List-Unsubscribe-Post", "message.headers.MIME-Version", "message.headers.Message-ID", "message.headers.Received", "message.headers.Return-Path", "message.headers.Sender",
			"message.headers.X-Sendquota-Push",
		}},
		{`"headers":{"X-A":"a\r\nBcc: b@c","X-B":"a\u0000","X-C":1,"X-D":"","X-E":"` + strings.Repeat("x", 901) + `","x-f":"a","X-F":"b","X-G":null}`, []string{
			"message.headers.X-A", "message.headers.X-B", "message.headers.X-C", "message.headers.X-D", "message.headers.X-E", "message.headers.X-G", "message.headers.x-f",
		}},
		{`"headers":{"X A":"a","X:":"a","":"a","X\r\nBcc":"a","Ä":"a","` + strings.Repeat("X", 65) + `":"a"}`, []string{
			"message.headers: ", "message.headers: X\r\nBcc", "message.headers: X A", "message.headers: X:", "message.headers: " + strings.Repeat("X", 64) + "…", "message.headers: Ä",
		}},
		{`"headers":` + many(51, func(i int) string { return fmt.Sprintf(`"X-%d":"a"`, i) }, "{", "}"), []string{"message.headers"}},
		{`"cc":"Ben <ben@example.com>","bcc":["a@b.example"],"reply_to":["c@d.example","e@f.example"]`, nil},
		{`"cc":"a@b, c@d","bcc":["a@b.example","nobody",7,"ä@b.example"],"reply_to":{}`, []string{
			"message.reply_to", "message.cc: a@b, c@d", "message.bcc[1]: nobody", "message.bcc[2]", "message.bcc[3]: ä@b.example",
		}},
		{`"cc":"a@b\r\nX: y"`, []string{"message.cc: a@b\r\nX: y"}},
		{`"cc":` + many(51, address51, "[", "]"), []string{"message.cc"}},
		{`"cc":` + many(25, address51, "[", "]") + `,"bcc":` + many(26, address51, "[", "]"), []string{"message.bcc"}},
		{`"from":"shop@example.com"`, nil},
		{`"from":"HELP@example.com"`, []string{"message.from: HELP@example.com"}},
		{`"from":"Me <help@EXAMPLE.com>"`, nil},
		{`"from":"boss@example.com"`, []string{"message.from: boss@example.com"}},
		{`"from":["help@example.com"]`, []string{"message.from"}},
		{`"attachments":{}`, []string{"message.attachments"}},
		{`"attachments":[{"name":"a.pdf","type":"application/pdf","content":"AAAA"},{"name":"../../x","type":"x","content":"A"},7]`, []string{
			"message.attachments[1].name: ../../x", "message.attachments[1].type: x", "message.attachments[1].content", "message.attachments[2]",
		}},
		{`"attachments":[{},{"name":"a\\b","content":"AA=="},{"name":"a\nb","content":"AAA"},{"name":"..","content":"_-__"},{"name":"` + strings.Repeat("ä", 101) + `","content":"","x":1}]`, []string{
			"message.attachments[0].name", "message.attachments[0].content", `message.attachments[1].name: a\b`, "message.attachments[2].name: a\nb", "message.attachments[2].content",
			"message.attachments[3].name: ..", "message.attachments[3].content", "message.attachments[4]: x", "message.attachments[4].name: " + strings.Repeat("ä", 32) + "…", "message.attachments[4].content",
		}},
		{`"attachments":[{"name":"a","type":"multipart/mixed","content":"AAAA"},{"name":"a","type":"message/rfc822","content":"AAAA"},{"name":"a","type":"text/plain\r\nX: y","content":"AAAA"},{"name":"a","type":"text/calendar; method=REQUEST","content":"AAAA"}]`, []string{
			"message.attachments[0].type: multipart/mixed", "message.attachments[1].type: message/rfc822", "message.attachments[2].type: text/plain\r\nX: y",
		}},
		{`"attachments":` + many(21, func(int) string { return `{"name":"a","content":"AAAA"}` }, "[", "]"), []string{"message.attachments"}},
		{`"attachments":[{"name":"a","content":"` + encoded(MaxAttachments) + `"}]`, nil},
		{`"attachments":[{"name":"a","content":"` + encoded(MaxAttachments-1) + `"},{"name":"b","content":"AAA="}]`, []string{"message.attachments"}},
	} {
		var got []string
		for _, f := range e.Check(testMailbox, json.RawMessage(`{"body":"x",`+tt.members+`}`)) {
			text := f.Field
			if f.Value != nil {
				text += fmt.Sprint(": ", f.Value)
			}
			got = append(got, text)
			if !strings.HasPrefix(f.Message, "must ") {
				t.Errorf("the message is %q", f.Message)
			}
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%.200s (-want +got):\n%s", tt.members, diff)
		}
	}
}

func address51(i int) string { return fmt.Sprintf(`"a%d@example.com"`, i) }

// many joins JSON texts.
func many(n int, one func(i int) string, begin, end string) string {
	var all []string
	for i := range n {
		all = append(all, one(i))
	}
	return begin + strings.Join(all, ",") + end
}

// sendingEmail returns a channel that reaches no server.
func sendingEmail(t testing.TB, cfg EmailConfig) *Email {
	t.Helper()
	cfg.Connection, cfg.Host = testConnection(ample), "mail.example"
	if cfg.From == "" {
		cfg.From = "The Shop <shop@example.com>"
	}
	e, err := NewEmail(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestEmail_Members: headers, copies, senders and attachments arrive. Hidden copies are in the envelope alone.
func TestEmail_Members(t *testing.T) {
	server := newMailServer(t, mailSetup{})
	e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample), ReplyTo: "Help <help@example.com>", AllowedFrom: []string{"Jürgen <juergen@bücher.example>"}})
	p := emailPush(`{"title":"Sale","body":"Now","html":"<b>Now</b>","from":"juergen@BÜCHER.example","reply_to":["a@example.com","B <b@example.com>"],
		"cc":["Ben <ben@example.com>","Zoë <zoe@straße.example>"],"bcc":["hidden@example.com","ben@example.com"],
		"headers":{"X-Shop":"eins","x-note":"Grüße"},"attachments":[{"name":"Übersicht 1.pdf","type":"application/pdf","content":"AAECAw=="},{"name":"b.bin","content":"//79"}]}`)
	p.To = "Änne <anna@bücher.example>"
	if got := e.Send(t.Context(), p, 1); got.Outcome != push.Delivered {
		t.Fatalf("%+v", got)
	}
	got := server.messages()[0]
	if !strings.HasPrefix(got.from, "FROM:<juergen@xn--bcher-kva.example>") {
		t.Errorf("the envelope is from %s", got.from)
	}
	want := []string{"TO:<anna@xn--bcher-kva.example>", "TO:<ben@example.com>", "TO:<zoe@xn--strae-oqa.example>", "TO:<hidden@example.com>"}
	if diff := cmp.Diff(want, got.all); diff != "" {
		t.Errorf("the envelope (-want +got):\n%s", diff)
	}
	if strings.Contains(got.data, "hidden") {
		t.Errorf("a hidden copy shows in\n%s", got.data)
	}
	m, err := netmail.ReadMessage(strings.NewReader(got.data))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From": "Jürgen <juergen@xn--bcher-kva.example>", "To": "Änne <anna@xn--bcher-kva.example>", "Cc": `"Ben" <ben@example.com>, Zoë <zoe@xn--strae-oqa.example>`,
		"Reply-To": `<a@example.com>, "B" <b@example.com>`, "X-Shop": "eins", "X-Note": "Grüße", "X-Sendquota-Push": p.ID.String(), "Message-Id": "<" + p.ID.String() + "@example.com>",
	} {
		if got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get(name)); got != want || err != nil {
			t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
		}
	}
}

// TestEmail_RefusedCopies: the mail goes out without the copies that the server refuses, and only the recipient of the push
// decides about it.
func TestEmail_RefusedCopies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reply string
		want  push.Outcome
	}{{"550 5.1.1 unknown", push.Delivered}, {"452 4.5.3 too many", push.Delivered}, {"421 4.3.2 going", push.Refused}, {mailDrops, push.Refused}} {
		server := newMailServer(t, mailSetup{script: mailScript{"RCPT TO:<ben@example.com>": tt.reply}})
		got := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample)}).Send(t.Context(), emailPush(`{"body":"x","cc":["ben@example.com","zoe@example.com"]}`), 1)
		if got.Outcome != tt.want || got.Final || got.Unregistered {
			t.Errorf("%q: %+v", tt.reply, got)
		}
		if n := len(server.messages()); (n == 1) != (tt.want == push.Delivered) {
			t.Errorf("%q: %d messages", tt.reply, n)
		}
	}
}
