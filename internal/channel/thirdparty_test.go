package channel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/address"
	"github.com/sendquota/sendquota/internal/push"
)

// mailCase is a mail that a server and a parser of others have read: see testdata/mail/README.md.
type mailCase struct{ name, to, message, unsubscribe string }

func mailCases() []mailCase {
	return []mailCase{
		{"text", "anna@example.com", `{"title":"Sale","body":"One\n.\n..two\nåäö ✓\n"}`, ""},
		{"names", "\"Ännchen, A.\" <anna@bücher.example>", `{"title":"Grüße, 世界 =?utf-8?q?x?=","html":"<p>Hej åäö</p>","from":"Jürgen <help@example.com>","reply_to":["\"Help, Desk\" <help@example.com>","b@example.com"],
			"cc":["Zoë <zoe@straße.example>","ben@example.com"],"bcc":["hidden@example.com","gone@example.com"]}`, ""},
		{"attachments", "anna@example.com", `{"title":"Report","body":"See below.","html":"<p>See <b>below</b>.</p>","headers":{"X-Note":"Grüße an alle, die das hier lesen, auch wenn es lang ist"},
			"attachments":[{"name":"Übersicht 2026.pdf","type":"application/pdf","content":"JVBERi0xLjQK"},{"name":"it's \"x\"; a.csv","type":"text/csv; charset=utf-8","content":"w6Q7YgoxOzIK"},{"name":"raw","content":"AAECA/8="}]}`, ""},
		{"signed", "Anna <anna@example.com>", `{"title":"Newsletter","body":"News","html":"<p>News</p>","attachments":[{"name":"a.txt","type":"text/plain","content":"YQo="}]}`, "https://sq.example.com/u/dG9rZW4"},
	}
}

func (c mailCase) push() push.Push {
	p := testPush()
	p.To, p.Unsubscribe = c.to, c.unsubscribe
	var m map[string]any
	if err := json.Unmarshal([]byte(c.message), &m); err != nil {
		panic(err)
	}
	headers, _ := m["headers"].(map[string]any)
	if headers == nil {
		headers = map[string]any{}
	}
	headers["X-Case"] = c.name
	m["headers"] = headers
	p.Message, _ = json.Marshal(m)
	return p
}

func thirdPartyEmail(t *testing.T, cfg EmailConfig) *Email {
	cfg.Connection, cfg.Security, cfg.From = testConnection(ample), NoTLS, "The Shop <shop@example.com>"
	cfg.AllowedFrom, cfg.BounceAddress = []string{"help@example.com"}, "bounces+{id}@example.com"
	e, err := NewEmail(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// boundary finds the random parts of a mail.
var boundary = regexp.MustCompile(`[0-9a-f]{60}`)

// normalMail returns a mail with boundaries that are numbered, and without a signature.
func normalMail(text []byte) string {
	if bytes.HasPrefix(text, []byte("DKIM-Signature:")) {
		_, rest, _ := strings.Cut(string(text), "\r\nAuto-Submitted:")
		text = []byte("Auto-Submitted:" + rest)
	}
	var seen []string
	return boundary.ReplaceAllStringFunc(string(text), func(one string) string {
		for i, s := range seen {
			if s == one {
				return fmt.Sprint("boundary-", i)
			}
		}
		seen = append(seen, one)
		return fmt.Sprint("boundary-", len(seen)-1)
	})
}

// TestEmail_ThirdParty: we still write the mails that others have read, to the byte, and these read what the pushes say.
// With MAIL_SERVER and DKIM_KEY it sends them to the server of testdata/mail/README.md instead, and then a hundred at once.
func TestEmail_ThirdParty(t *testing.T) {
	if server := os.Getenv("MAIL_SERVER"); server != "" {
		recordMails(t, server)
		return
	}
	e := thirdPartyEmail(t, EmailConfig{Host: "127.0.0.1"})
	for _, c := range mailCases() {
		kept, err := os.ReadFile(filepath.Join("testdata/mail", c.name+".eml"))
		if err != nil {
			t.Fatal(err)
		}
		p := c.push()
		mail := mailOf(t, e, p)
		if diff := cmp.Diff(normalMail(kept), normalMail(mail.text)); diff != "" {
			t.Errorf("%s (-kept +ours):\n%s", c.name, diff)
		}
		if got := readByOthers(t, c.name); got.differs(t, p, mail) {
			t.Errorf("%s is read as\n%+v", c.name, got)
		}
	}
	record, err := os.ReadFile("testdata/mail/dkim.txt")
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := os.ReadFile("testdata/mail/signed.eml")
	if _, err := verifyDKIM(kept, strings.TrimSpace(string(record))); err != nil {
		t.Errorf("signed: %v", err)
	}
}

// theirs is what smtp-server, mailparser and mailauth read of a mail.
type theirs struct {
	Envelope struct {
		From string
		To   []string
	}
	From, To, CC, BCC, ReplyTo     []struct{ Name, Address string }
	Subject, MessageID, Text, Note string
	HTML                           string
	List                           map[string]map[string]string
	Attachments                    []struct{ Filename, ContentType, ContentDisposition, Content string }
	DKIM                           []struct{ Result, Domain, Selector, Algo, Headers string }
}

func readByOthers(t *testing.T, name string) (got theirs) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/mail", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// differs reports what others read otherwise than the push has it.
func (got theirs) differs(t *testing.T, p push.Push, mail outgoing) bool {
	t.Helper()
	in := open(p.Message)
	to := mail.to
	if in["bcc"] != nil {
		to = to[:len(to)-1] // the server refused the last copy
	}
	var attachments []struct{ Name, Type, Content string }
	_ = json.Unmarshal(in["attachments"], &attachments)
	var envelope []string
	for _, one := range got.Envelope.To { // smtp-server shows domains in Unicode
		envelope = append(envelope, address.Normal(address.Email, one))
	}
	same := cmp.Equal(envelope, to) && got.Envelope.From == mail.from && got.BCC == nil &&
		got.Subject == in.text("title") && strings.TrimSpace(got.Text) == strings.TrimSpace(in.text("body")) && strings.TrimSpace(got.HTML) == in.text("html") &&
		got.MessageID == "<"+p.ID.String()+"@example.com>" && got.Note == open(in["headers"]).text("X-Note") && len(got.Attachments) == len(attachments) &&
		got.List["unsubscribe"]["url"] == p.Unsubscribe
	for i, a := range attachments {
		their := got.Attachments[i]
		kind, _, _ := strings.Cut(a.Type, ";")
		if kind == "" {
			kind = "application/octet-stream"
		}
		same = same && their.Filename == a.Name && their.ContentType == kind && their.Content == a.Content && their.ContentDisposition == "attachment"
	}
	if in["cc"] != nil {
		read := fmt.Sprint(got.From, got.To, got.CC, got.ReplyTo)
		same = same && read == "[{Jürgen help@example.com}] [{Ännchen, A. anna@bücher.example}] [{Zoë zoe@straße.example} { ben@example.com}] [{Help, Desk help@example.com} { b@example.com}]"
	}
	if p.Unsubscribe != "" {
		same = same && len(got.DKIM) == 1 && got.DKIM[0].Result == "pass" && strings.Contains(got.DKIM[0].Headers, "List-Unsubscribe-Post")
	}
	return !same
}

// recordMails sends the mails to a server of others, and then a hundred at once.
func recordMails(t *testing.T, server string) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(os.Getenv("DKIM_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := EmailConfig{Host: host}
	cfg.Port, _ = strconv.Atoi(port)
	plain := thirdPartyEmail(t, cfg)
	cfg.DKIM = DKIM{"bücher.example", "s1", string(key)}
	signing := thirdPartyEmail(t, cfg)
	for _, c := range mailCases() {
		e := plain
		if c.unsubscribe != "" {
			e = signing
		}
		if r := e.Send(t.Context(), c.push(), 1); r.Outcome != push.Delivered {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	signing.CloseIdle()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			p := emailPush(`{"body":"x"}`)
			p.ID = uuid.New()
			if r := plain.Send(t.Context(), p, 1); r.Outcome != push.Delivered {
				t.Errorf("%+v", r)
			}
		})
	}
	all.Wait()
}
