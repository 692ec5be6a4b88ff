package channel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

const testMailbox = markTo + "@example.net"

func newTestEmail(t testing.TB, s *mailServer, cfg EmailConfig) *Email {
	t.Helper()
	cfg.Host, cfg.Port, cfg.Roots = "127.0.0.1", s.port(), s.roots
	if cfg.From == "" {
		cfg.From = "The Shop <shop@example.com>"
	}
	if cfg.Security != NoTLS {
		cfg.Username, cfg.Password = markUser, markPassword
	}
	e, err := NewEmail(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.CloseIdle)
	return e
}

func emailPush(message string) push.Push {
	p := testPush()
	p.To, p.Message = testMailbox, json.RawMessage(message)
	return p
}

// The conversation has TLS first, then the sign-in, then one message to one recipient.
func TestEmail_Conversation(t *testing.T) {
	for _, tt := range []struct {
		name     string
		security string
		ehlo     []string
		user     string
		want     string
	}{
		{"STARTTLS", "", nil, markUser, "EHLO STARTTLS EHLO AUTH MAIL RCPT DATA QUIT"},
		{"TLS at once", TLS, nil, markUser, "EHLO AUTH MAIL RCPT DATA QUIT"},
		{"no TLS", NoTLS, nil, "", "EHLO MAIL RCPT DATA QUIT"},
		{"LOGIN", StartTLS, []string{"STARTTLS", "AUTH LOGIN XOAUTH2"}, markUser, "EHLO STARTTLS EHLO AUTH MAIL RCPT DATA QUIT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newMailServer(t, mailSetup{ehlo: tt.ehlo, implicit: tt.security == TLS})
			e := newTestEmail(t, server, EmailConfig{Connection: testConnection(0), Security: tt.security})
			began := time.Now()
			got := e.Send(t.Context(), emailPush(`{"title":"Sale","body":"Now"}`), 1)
			if diff := cmp.Diff(Result{Outcome: push.Delivered, ProviderMessageID: "4Z"}, got, notWhen); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if got.Handed.Before(began) || got.Handed.After(time.Now()) {
				t.Errorf("handed over at %s", got.Handed)
			}
			m := server.messages()[0]
			if m.user != tt.user || (m.pass == markPassword) != (tt.user != "") || m.secure != (tt.security != NoTLS) {
				t.Errorf("signed in as %q with %q, TLS %t", m.user, m.pass, m.secure)
			}
			if m.from != "FROM:<shop@example.com>"+map[bool]string{true: " BODY=8BITMIME"}[tt.ehlo == nil] || m.to != "TO:<"+testMailbox+">" {
				t.Errorf("from %s to %s", m.from, m.to)
			}
			if commands := strings.Join(m.commands, " ") + " QUIT"; commands != tt.want {
				t.Errorf("said %s, want %s", commands, tt.want)
			}
		})
	}
}

// A recipient's program reads what was sent.
func TestEmail_Message(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		subject       string
		parts         []string
	}{
		{"text", `{"title":"Sale","body":"One\n.\n..two\næøå"}`, "Sale", []string{"text/plain: One\n.\n..two\næøå"}},
		{"HTML", `{"title":"Grüße, 世界","html":"<b>Now</b>"}`, "Grüße, 世界", []string{"text/html: <b>Now</b>"}},
		{"both", `{"body":"Now","html":"<b>Now</b>","data":1}`, "", []string{"text/plain: Now", "text/html: <b>Now</b>"}},
		{"a long subject", `{"title":"` + strings.Repeat("x", 900) + `","body":"x"}`, strings.Repeat("x", 900), []string{"text/plain: x"}},
		{"a long line", `{"body":"` + strings.Repeat("ab ", 2000) + `."}`, "", []string{"text/plain: " + strings.Repeat("ab ", 2000) + "."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newMailServer(t, mailSetup{})
			e := newTestEmail(t, server, EmailConfig{Connection: testConnection(0), ReplyTo: "Help <help@example.com>", MessageIDDomain: "mail.example.com"})
			p := emailPush(tt.message)
			for attempt := range 2 {
				if got := e.Send(t.Context(), p, attempt+1); got.Outcome != push.Delivered {
					t.Fatal(got)
				}
			}
			messages := server.messages()
			for _, m := range messages {
				for line := range strings.SplitSeq(m.data, "\r\n") {
					if len(line) > 998 {
						t.Errorf("a line of %d bytes", len(line))
					}
				}
				got, err := netmail.ReadMessage(strings.NewReader(m.data))
				if err != nil {
					t.Fatal(err)
				}
				for name, want := range map[string]string{
					"From": `"The Shop" <shop@example.com>`, "To": "<" + testMailbox + ">", "Reply-To": `"Help" <help@example.com>`, "Mime-Version": "1.0",
					"Message-Id": "<" + p.ID.String() + "@mail.example.com>", "Date": "Tue, 01 Dec 2026 08:00:00 +0000", "Subject": tt.subject, "User-Agent": "", "Auto-Submitted": "auto-generated",
				} {
					if header, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get(name)); header != want || err != nil {
						t.Errorf("%s is %q, want %q (%v)", name, header, want, err)
					}
				}
				if diff := cmp.Diff(tt.parts, parts(t, got)); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func parts(t *testing.T, m *netmail.Message) []string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	read := func(kind string, from io.Reader) string {
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		return kind + ": " + strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	}
	if kind != "multipart/alternative" {
		return []string{read(kind, quotedprintable.NewReader(m.Body))}
	}
	var all []string
	for in := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := in.NextPart()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		all = append(all, read(kind, part))
	}
}

// If anything fails before the end of the message, nothing was delivered. After it, the server's reply counts, and
// without a reply the outcome is unknown.
func TestEmail_Steps(t *testing.T) {
	t.Parallel()
	const yes, no = true, false
	type result struct {
		outcome             push.Outcome
		final, unregistered bool
		text                string
	}
	refused := func(final bool, text string) result { return result{push.Refused, final, no, text} }
	unknown := func(text string) result { return result{push.Unknown, no, no, text} }
	for _, tt := range []struct {
		step, reply string
		want        result
	}{
		{"greeting", "554 5.7.1 " + markUser, refused(no, "the mail server answered 554 5.7.1 to greeting")},
		{"greeting", "421 busy", refused(no, "the mail server answered 421 to greeting")},
		{"greeting", mailHangs, refused(no, "not handed over, at greeting: timed out")},
		{"greeting", mailDrops, refused(no, "not handed over, at greeting: the server closed the connection")},
		{"greeting", "HTTP/1.1 400 Bad Request", refused(no, "not handed over, at greeting: the server does not speak SMTP")},
		{"EHLO", mailResets, refused(no, "not handed over, at greeting: ")},
		{"STARTTLS", "454 4.7.0 not now", refused(no, "the mail server answered 454 4.7.0 to STARTTLS")},
		{"STARTTLS", "501 no", refused(no, "the mail server answered 501 to STARTTLS")},
		{"STARTTLS", "220 go\x00drop", refused(no, "not handed over, at STARTTLS: ")},
		{"AUTH", "535 5.7.8 " + markPassword, refused(no, "the mail server answered 535 5.7.8 to AUTH")},
		{"AUTH", "454 4.7.0 later", refused(no, "the mail server answered 454 4.7.0 to AUTH")},
		{"AUTH", mailDrops, refused(no, "not handed over, at AUTH: the server closed the connection")},
		{"AUTH", mailEchoes, refused(no, "not handed over, at AUTH: the server does not speak SMTP")},
		{"MAIL", "550 5.7.1 not you", refused(no, "the mail server answered 550 5.7.1 to MAIL")},
		{"MAIL", "530 5.7.0 sign in", refused(no, "the mail server answered 530 5.7.0 to MAIL")},
		{"MAIL", "451 4.3.0 trouble", refused(no, "the mail server answered 451 4.3.0 to MAIL")},
		{"RCPT", "550 5.1.1 <" + markTo + "> is unknown", result{push.Refused, yes, yes, "unregistered: the mail server answered 550 5.1.1 to RCPT"}},
		{"RCPT", "556 5.1.10 null MX", result{push.Refused, yes, yes, "unregistered: the mail server answered 556 5.1.10 to RCPT"}},
		{"RCPT", "550 no such user", refused(yes, "the mail server answered 550 to RCPT")},
		{"RCPT", "553-5.1.3 bad\r\n553 5.1.3 address", refused(yes, "the mail server answered 553 5.1.3 to RCPT")},
		{"RCPT", "552 5.2.2 full", refused(yes, "the mail server answered 552 5.2.2 to RCPT")},
		{"RCPT", "550 5.7.1 no", refused(yes, "the mail server answered 550 5.7.1 to RCPT")},
		{"RCPT", "550 5.7.1 <dmarc@example.com> spf@example.com is unknown", refused(yes, "the mail server answered 550 5.7.1 to RCPT")},
		{"RCPT", "554 5.7.1 <" + markTo + ">: Relay access denied", refused(no, "the mail server answered 554 5.7.1 to RCPT: the server does not relay for us")},
		{"RCPT", "550 5.7.54 SMTP; unable to relay", refused(no, "the mail server answered 550 5.7.54 to RCPT: the server does not relay for us")},
		{"RCPT", "550 5.7.650 no", refused(yes, "the mail server answered 550 5.7.650 to RCPT")},
		{"RCPT", "550 5.1.1 blocklist", result{push.Refused, yes, yes, "unregistered: the mail server answered 550 5.1.1 to RCPT"}},
		{"dot", "550-5.7.26 no DMARC\r\n550 5.7.26 at all", refused(no, "the mail server answered 550 5.7.26 to the end of the message: DKIM, SPF, DMARC, the reverse DNS or the MX of the sender is not valid")},
		{"dot", "554 Service unavailable; Client host blocked using zen.spamhaus.org", refused(no, "the mail server answered 554 to the end of the message: the sender's IP address or domain is blocked")},
		{"dot", "550 5.7.60 SMTP; Client does not have permissions to send as this sender", refused(no, "the mail server answered 550 5.7.60 to the end of the message: we may not send as this sender")},
		{"RCPT", "450 4.2.0 greylisted", refused(no, "the mail server answered 450 4.2.0 to RCPT")},
		{"RCPT", "421 4.4.2 going", refused(no, "the mail server answered 421 4.4.2 to RCPT")},
		{"RCPT", "503 5.5.1 sequence", refused(no, "the mail server answered 503 5.5.1 to RCPT")},
		{"RCPT", "530 5.1.1 sign in", refused(no, "the mail server answered 530 5.1.1 to RCPT")},
		{"RCPT", mailDrops, refused(no, "not handed over, at RCPT: the server closed the connection")},
		{"DATA", "554 5.5.1 no", refused(yes, "the mail server answered 554 5.5.1 to DATA")},
		{"DATA", "451 4.3.0 later", refused(no, "the mail server answered 451 4.3.0 to DATA")},
		{"DATA", mailHangs, refused(no, "not handed over, at DATA: timed out")},
		{"dot", "250 2.0.0 Ok", result{push.Delivered, no, no, ""}},
		{"dot", "252 2.0.0 Ok", result{push.Delivered, no, no, ""}},
		{"dot", "554 5.6.0 " + markMessage, refused(yes, "the mail server answered 554 5.6.0 to the end of the message")},
		{"dot", "550 5.1.1 after all", refused(yes, "the mail server answered 550 5.1.1 to the end of the message")},
		{"dot", "500 what", refused(no, "the mail server answered 500 to the end of the message")},
		{"dot", "451 4.7.1 greylisted", refused(no, "the mail server answered 451 4.7.1 to the end of the message")},
		{"dot", "421 4.3.0 " + markRecipient, refused(no, "the mail server answered 421 4.3.0 to the end of the message")},
		{"dot", "354 more", unknown("the mail server answered 354 to the end of the message")},
		{"dot", mailHangs, unknown("no answer: timed out")},
		{"dot", mailDrops, unknown("no answer: the server closed the connection")},
		{"dot", mailResets, unknown("no answer: ")},
		{"QUIT", mailHangs, result{push.Delivered, no, no, ""}},
		{"QUIT", mailDrops, result{push.Delivered, no, no, ""}},
		{"QUIT", "554 no", result{push.Delivered, no, no, ""}},
	} {
		t.Run(tt.step+" "+strings.Trim(tt.reply, "\x00"), func(t *testing.T) {
			t.Parallel()
			server := newMailServer(t, mailSetup{script: mailScript{tt.step: tt.reply}})
			timeout := ample
			if tt.reply == mailHangs && tt.step != "QUIT" {
				timeout = 2 * brief
			}
			e := newTestEmail(t, server, EmailConfig{Connection: testConnection(timeout)})
			got := e.Send(t.Context(), emailPush(`{"body":"`+markMessage+`"}`), 1)
			if diff := cmp.Diff(fmt.Sprint(tt.want.outcome, tt.want.final, tt.want.unregistered), fmt.Sprint(got.Outcome, got.Final, got.Unregistered)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.want.text != got.Error && !(strings.HasSuffix(tt.want.text, ": ") && strings.HasPrefix(got.Error, tt.want.text)) {
				t.Errorf("error %q, want %q", got.Error, tt.want.text)
			}
			checkError(t, got.Error)
			if n := len(server.messages()); (n == 1) != (tt.step == "dot" || tt.step == "QUIT") {
				t.Errorf("the server got %d whole messages", n)
			}
		})
	}
}

// A conversation with a server that refuses ends with QUIT, too.
func TestEmail_Quit(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"AUTH", "MAIL", "RCPT", "DATA"} {
		server := newMailServer(t, mailSetup{script: mailScript{step: "550 no"}})
		e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample)})
		e.Send(t.Context(), emailPush(`{"body":"x"}`), 1)
		e.CloseIdle()
		testenv.Until(t, time.Millisecond, "the conversation ends", func() bool { return len(server.all()) > 0 })
		if all := server.all(); len(all) != 1 || !all[0].quit {
			t.Errorf("refused at %s: %+v", step, all)
		}
	}
}

// Without TLS, neither the password nor the message is sent.
func TestEmail_NoPasswordInTheClear(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ehlo  []string
		trust bool
		want  string
	}{
		{"STARTTLS is not offered", []string{"AUTH PLAIN"}, true, "not handed over, at STARTTLS: the server does not offer STARTTLS, which the setting tls demands"},
		{"another's certificate", nil, false, "not handed over, at STARTTLS: the server's certificate is signed by an unknown authority"},
		{"no way to sign in", []string{"STARTTLS", "AUTH GSSAPI"}, true, "not handed over, at AUTH: the server offers neither PLAIN nor LOGIN to sign in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newMailServer(t, mailSetup{ehlo: tt.ehlo})
			if !tt.trust {
				server.roots = nil
			}
			got := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample)}).Send(t.Context(), emailPush(`{"body":"x"}`), 1)
			if diff := cmp.Diff(Result{Outcome: push.Refused, Down: true, Error: tt.want}, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			for _, m := range server.all() {
				if m.pass != "" || m.from != "" {
					t.Errorf("the server got %+v", m)
				}
			}
		})
	}
}

// late is a context whose deadline has passed without a signal, as for a worker that was frozen.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// A worker that goes on when its attempt counts as lost does not end the message.
func TestEmail_FrozenWorker(t *testing.T) {
	server := newMailServer(t, mailSetup{})
	e := newTestEmail(t, server, EmailConfig{Connection: testConnection(0)})
	conn, err := net.Dial("tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	c := &mailConn{line: newMailLine(t.Context(), conn)}
	if d := e.open(t.Context(), c, "shop@example.com"); d.err != nil {
		t.Fatal(d.err)
	}
	d := c.deliver(late{t.Context()}, outgoing{"shop@example.com", []string{testMailbox}, []byte("Subject: x\r\n\r\nx\r\n")})
	got := e.classify(d)
	e.settle(c, d.err)
	if diff := cmp.Diff(Result{Outcome: push.Refused, Error: "not sent: the worker was held up"}, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	for len(server.all()) == 0 { // until the server has seen the end of the connection
		time.Sleep(time.Millisecond)
	}
	if m := server.all()[0]; m.whole || !slices.Contains(m.commands, "DATA") {
		t.Errorf("the server got %+v", m)
	}
}

// An attempt that is canceled before the end of the message is refused; after it, the outcome is unknown.
func TestEmail_Canceled(t *testing.T) {
	for step, want := range map[string]push.Outcome{"RCPT": push.Refused, "dot": push.Unknown} {
		t.Run(step, func(t *testing.T) {
			server := newMailServer(t, mailSetup{script: mailScript{step: mailHangs}})
			e := newTestEmail(t, server, EmailConfig{Connection: testConnection(time.Hour)})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan Result)
			go func() { done <- e.Send(ctx, emailPush(`{"body":"x"}`), 1) }()
			for server.waiting.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			if got := <-done; got.Outcome != want || got.Final {
				t.Errorf("got %+v, want %s", got, want)
			}
		})
	}
}

func TestEmail_BadSettings(t *testing.T) {
	good := EmailConfig{Connection: testConnection(0), Host: "h", From: "a@b.example"}
	for name, tt := range map[string]struct {
		change func(*EmailConfig)
		want   string
	}{
		"no host":                    {func(c *EmailConfig) { c.Host = "" }, "host is missing"},
		"no sender":                  {func(c *EmailConfig) { c.From = markSecret }, "from is not an e-mail address"},
		"odd reply address":          {func(c *EmailConfig) { c.ReplyTo = "a@b, c@d" }, "reply_to is not an e-mail address"},
		"local part not ASCII":       {func(c *EmailConfig) { c.From = "jürgen@example.com" }, "from must have only ASCII characters before the @: mail servers do not reliably take others"},
		"domain that is wrong":       {func(c *EmailConfig) { c.ReplyTo = "a@xn--a.example" }, "reply_to must have a domain that can be written in its xn-- form"},
		"odd sender that is allowed": {func(c *EmailConfig) { c.AllowedFrom = []string{"a@b.example", markSecret} }, "allowed_from[1] is not an e-mail address"},
		"password in the clear":      {func(c *EmailConfig) { c.Security, c.Password = NoTLS, markPassword }, "password must not be sent without TLS"},
	} {
		cfg := good
		tt.change(&cfg)
		_, err := NewEmail(cfg)
		if err == nil || err.Error() != "channel push: "+tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEmail_DomainsInASCII: domains of the settings go out in their xn-- form, in the envelope, the headers and the message id;
// nothing on the wire is raw UTF-8.
func TestEmail_DomainsInASCII(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"Büro <shop@bücher.example>", "Büro <shop@BÜCHER.example>", "Büro <shop@xn--bcher-kva.example>"} {
		server := newMailServer(t, mailSetup{})
		e := newTestEmail(t, server, EmailConfig{Connection: testConnection(0), From: from, ReplyTo: "hilfe@straße.example"})
		if r := e.Send(t.Context(), emailPush(`{"body":"x"}`), 1); r.Outcome != push.Delivered {
			t.Fatalf("%s: %+v", from, r)
		}
		m := server.messages()[0]
		if !strings.HasPrefix(m.from, "FROM:<shop@xn--bcher-kva.example>") {
			t.Errorf("%s: the envelope says %s", from, m.from)
		}
		for _, want := range []string{"<shop@xn--bcher-kva.example>", "<hilfe@xn--strae-oqa.example>", "@xn--bcher-kva.example>"} {
			if !strings.Contains(string(m.data), want) {
				t.Errorf("%s: no %s in %s", from, want, m.data)
			}
		}
		for i := range m.data {
			if m.data[i] >= 0x80 {
				t.Errorf("%s: raw UTF-8 in %s", from, m.data)
				break
			}
		}
	}
}
