package receipt

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const bounceAddress = "bounces+{id}@sender.example"

func newTestDSN(t testing.TB) *DSN {
	t.Helper()
	d, err := NewDSN("bounce-token", bounceAddress)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func posted(token, body string) Request {
	return Request{Header: http.Header{"Authorization": {token}, "Content-Type": {"message/rfc822"}}, Body: []byte(body)}
}

// TestDSN_Postfix reads what Postfix sent: see testdata/README.md.
func TestDSN_Postfix(t *testing.T) {
	bounced := func(address, code, reason string) []Receipt {
		r := Receipt{Push: testPush, State: Bounced, Address: address, Code: code, Reason: reason}
		if _, isHard := statusCodes()[code]; isHard {
			r.Hard, r.Suppress = true, HardBounce
		}
		return []Receipt{r}
	}
	arrived := func(action string, addresses ...string) (all []Receipt) {
		for _, address := range addresses {
			all = append(all, Receipt{Push: testPush, State: Delivered, Code: action, Address: address})
		}
		return all
	}
	const local = "nobody-here@mx.example.net"
	unknown := bounced(local, "5.1.1", "there is no such mailbox")
	files := map[string][]Receipt{
		"unknown-user": unknown, "unknown-user-no-verp": unknown, "unknown-user-verp-only": unknown, "headers-only": unknown,
		"not-ours": nil, "no-report": nil, "later-delayed": nil, "unreachable-delayed": nil,
		"no-domain":         bounced("anna@gone.example", "5.4.4", "there is no such domain, or it takes no mail"),
		"null-mx":           bounced("anna@nullmx.example", "5.1.0", "the address was refused"),
		"mailbox-full":      bounced("full@remote.example", "5.2.2", "the mailbox is full"),
		"policy":            bounced("policy@remote.example", "5.7.1", "the sender or the content was refused"),
		"plain-550":         bounced("plain@remote.example", "5.0.0", "the mail server reports no reason"),
		"disabled":          bounced("disabled@remote.example", "5.2.1", "the mailbox is disabled"),
		"unreachable":       bounced("anna@down.example", "4.4.1", "the mail server does not answer"),
		"later":             bounced("later@remote.example", "4.3.0", "the mail system cannot take it"),
		"eight-one-bounced": bounced("gone@remote.example", "5.1.1", "there is no such mailbox"),
		"eight-all-reported": append(bounced("full@remote.example", "5.2.2", "the mailbox is full"),
			bounced("gone@remote.example", "5.1.1", "there is no such mailbox")...),
		"eight-all-reported-success": append(arrived("delivered", "box@sender.example"),
			arrived("relayed", "a@remote.example", "b@remote.example", "c@remote.example", "d@remote.example", "f@remote.example")...),
		"delivered": arrived("delivered", "box@sender.example"),
	}
	entries, err := os.ReadDir("testdata/dsn")
	if err != nil || len(entries) != len(files) {
		t.Errorf("%v: %d files, %d expected", err, len(entries), len(files))
	}
	for name, want := range files {
		t.Run(name, func(t *testing.T) {
			text := string(file(t, "dsn/"+name+".eml"))
			for _, mail := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "From MAILER-DAEMON Sun Nov 29 01:06:54 2026\n" + text} {
				report, err := newTestDSN(t).Read(t.Context(), posted("Bearer bounce-token", mail))
				checkReport(t, report, err)
				for i, r := range report.Receipts {
					if r.At.Year() != 2026 {
						t.Errorf("the time is %v", r.At)
					}
					report.Receipts[i].At = time.Time{}
				}
				if diff := cmp.Diff(Report{Receipts: want, Foreign: map[string]int{"not-ours": 1}[name]}, report); diff != "" || err != nil {
					t.Errorf("%v %s", err, diff)
				}
			}
		})
	}
}

// reportMail returns a notification with these fields about recipients, and the headers of the returned message.
func reportMail(kind, status, original string) string {
	return "From: x@mx.example.net\r\nTo: shop@sender.example\r\nDate: Thu, 12 Feb 2026 17:42:55 +0000\r\nContent-Type: multipart/report; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\nIt did not work.\r\n--b\r\nContent-Type: " + kind + "\r\n\r\n" + status +
		"\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\n" + original + "\r\n\r\n--b--\r\n"
}

const ourHeaders = "Message-ID: <0190a000-0000-7000-8000-000000000042@sender.example>\r\nTo: anna@example.com"

// Each recipient has fields of its own: of eight, one has bounced.
func TestDSN_Recipients(t *testing.T) {
	status := "Reporting-MTA: dns; mx.example.net\r\n"
	for i := range 8 {
		action, code := "delivered", "2.0.0"
		if i == 5 {
			action, code = "Failed", "5.1.1 (bad destination mailbox address)"
		}
		status += fmt.Sprintf("\r\nFinal-Recipient: rfc822; r%d@example.com\r\nAction: %s\r\nStatus: %s\r\n", i, action, code)
	}
	report, err := newTestDSN(t).ReadMail([]byte(reportMail("message/delivery-status", status, ourHeaders)))
	checkReport(t, report, err)
	if len(report.Receipts) != 8 {
		t.Fatalf("%v %+v", err, report)
	}
	for i, r := range report.Receipts {
		if r.Hard != (i == 5) || (r.State == Bounced) != (i == 5) || r.Address != fmt.Sprintf("r%d@example.com", i) || !r.At.Equal(eventTime) {
			t.Errorf("%+v", r)
		}
	}
}

func TestDSN_Fields(t *testing.T) {
	for name, tt := range map[string]struct {
		fields string
		want   []Receipt
	}{
		"a better code in the reply":  {"Action: failed\r\nStatus: 5.0.0\r\nDiagnostic-Code: smtp; 550 5.1.1 <anna@example.com> unknown", []Receipt{{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.1", Reason: "there is no such mailbox"}}},
		"a code in the reply only":    {"Action: failed\r\nDiagnostic-Code: smtp;550-5.1.1 unknown", []Receipt{{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.1", Reason: "there is no such mailbox"}}},
		"Exchange":                    {"Action: failed\r\nStatus: 5.1.10\r\nDiagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found", []Receipt{{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.10", Reason: "there is no such recipient, or its domain takes no mail"}}},
		"a reply of its own":          {"Action: failed\r\nStatus: 5.7.1\r\nDiagnostic-Code: smtp; 550 5.1.1 unknown", []Receipt{{State: Bounced, Code: "5.7.1", Reason: "the sender or the content was refused"}}},
		"no code":                     {"Action: failed", []Receipt{{State: Bounced, Code: "failed", Reason: "the mail server reports no reason"}}},
		"a hostile code":              {"Action: failed\r\nStatus: anna@example.com", []Receipt{{State: Bounced, Code: "failed", Reason: "the mail server reports no reason"}}},
		"a temporary code":            {"Action: failed\r\nStatus: 4.1.1", []Receipt{{State: Bounced, Code: "4.1.1", Reason: "the address was refused"}}},
		"a code of success":           {"Action: failed\r\nStatus: 2.1.5", []Receipt{{State: Bounced, Code: "failed", Reason: "the mail server reports no reason"}}},
		"relayed":                     {"Action: relayed\r\nStatus: 2.0.0", []Receipt{{State: Delivered, Code: "relayed"}}},
		"expanded":                    {"Action: EXPANDED (list)\r\nStatus: 2.1.5", []Receipt{{State: Delivered, Code: "expanded"}}},
		"delayed":                     {"Action: delayed\r\nStatus: 5.1.1", nil},
		"unknown":                     {"Action: lost\r\nStatus: 5.1.1", nil},
		"no action":                   {"Status: 5.1.1", nil},
		"names in capitals":           {"ACTION: failed\r\nstatus: 5.1.1", []Receipt{{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.1", Reason: "there is no such mailbox"}}},
		"a folded line":               {"Action: failed\r\nStatus:\r\n 5.1.1", []Receipt{{State: Bounced, Hard: true, Suppress: HardBounce, Code: "5.1.1", Reason: "there is no such mailbox"}}},
		"a line that is no field":     {"Action: failed\r\nnonsense\r\nStatus: 5.1.1", nil},
		"an action on the first line": {"Action: failed\r\nStatus: 5.2.2\r\nLast-Attempt-Date: Thu, 12 Feb 2026 17:42:55 +0000", []Receipt{{State: Bounced, Code: "5.2.2", Reason: "the mailbox is full"}}},
	} {
		t.Run(name, func(t *testing.T) {
			status := "Reporting-MTA: dns; x\r\n\r\nFinal-Recipient: rfc822; <anna@example.com>\r\n" + tt.fields + "\r\n"
			for _, kind := range []string{"message/delivery-status", "Message/Global-Delivery-Status; charset=utf-8"} {
				report, err := newTestDSN(t).ReadMail([]byte(reportMail(kind, status, ourHeaders)))
				wantEvent(t, kind, report, err, slices.Clone(tt.want))
			}
		})
	}
}

// The address is the one that the message was sent to, also if it was forwarded.
func TestDSN_Address(t *testing.T) {
	for address, want := range map[string]string{
		"Original-Recipient: rfc822;anna@example.com\r\nFinal-Recipient: rfc822; other@example.org": testAddress,
		"Original-Recipient: RFC822 ; a+2Bb+3D@example.com":                                         "a+b=@example.com",
		"Original-Recipient: rfc822;a+b@example.com":                                                "a+b@example.com",
		"Original-Recipient: x400;x\r\nFinal-Recipient: rfc822;anna@example.com":                    testAddress,
		"Final-Recipient: utf-8; jürgen@example.com":                                                "jürgen@example.com",
		"Final-Recipient: rfc822;" + strings.Repeat("a", 400):                                       strings.Repeat("a", maxAddress),
		"Final-Recipient: anna@example.com":                                                         "",
		"X: y":                                                                                      "",
	} {
		report, err := newTestDSN(t).ReadMail([]byte(reportMail("message/delivery-status", "Reporting-MTA: x\r\n\r\n"+address+"\r\nAction: failed\r\n", ourHeaders)))
		checkReport(t, report, err)
		if len(report.Receipts) != 1 || report.Receipts[0].Address != want {
			t.Errorf("%q: %v %+v", address, err, report)
		}
	}
}

// The push is found by the envelope address, by our Message-ID, or not at all.
func TestDSN_Push(t *testing.T) {
	id := testPush.String()
	mail := func(head, message, original string) string {
		return head + reportMail("message/delivery-status", "Reporting-MTA: x\r\n"+message+"\r\nFinal-Recipient: rfc822;anna@example.com\r\nAction: failed\r\n", original)
	}
	for name, tt := range map[string]struct {
		mail string
		ours bool
	}{
		"returned headers":       {mail("", "", "Message-ID: <"+id+"@other.example>"), true},
		"Delivered-To":           {mail("Delivered-To: bounces+"+id+"@sender.example\r\n", "", ""), true},
		"X-Original-To":          {mail("X-Original-To: <BOUNCES+"+strings.ToUpper(id)+"@Sender.Example>\r\n", "", ""), true},
		"To, among others":       {mail("To: \"x\" <x@example.com>, <bounces+"+id+"@sender.example>\r\n", "", ""), true},
		"envelope id":            {mail("", "Original-Envelope-Id: "+id+"\r\n", ""), true},
		"envelope id of a mail":  {mail("", "Original-Envelope-Id: <"+id+"@sender.example>\r\n", ""), true},
		"References":             {mail("References: <x@y> <"+id+"@sender.example>\r\n", "", ""), true},
		"another mail":           {mail("", "", "Message-ID: <x@other.example>"), false},
		"another address":        {mail("Delivered-To: bounces+"+id+"@other.example\r\n", "", ""), false},
		"an address in the name": {mail("Subject: bounces+"+id+"@sender.example\r\n", "", ""), false},
		"no returned headers":    {mail("", "", ""), false},
		"the first headers":      {mail("", "", "Message-ID: <"+id+"@x>\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <x@y>"), true},
		"not further headers":    {mail("", "", "Message-ID: <x@y>\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <"+id+"@x>"), false},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := newTestDSN(t).ReadMail([]byte(tt.mail))
			checkReport(t, report, err)
			if (len(report.Receipts) == 1) != tt.ours || (report.Foreign == 1) == tt.ours {
				t.Errorf("%v %+v", err, report)
			}
		})
	}
}

func TestDSN_Complaints(t *testing.T) {
	complaint := func(kind string) []Receipt {
		return []Receipt{{State: Complained, Suppress: Complaint, Code: "feedback/" + kind, Reason: "the recipient has complained"}}
	}
	abuse := complaint("abuse")
	abuse[0].Reason = "the recipient has marked it as spam"
	for kind, want := range map[string][]Receipt{
		"abuse": abuse, "other": complaint("other"), "new": complaint("new"), "not-spam": nil, "auth-failure": nil,
		"opt-out": {{Unsubscribed: true, Code: "feedback/opt-out", Reason: "the recipient asks to be removed"}},
	} {
		report, err := newTestDSN(t).ReadMail([]byte(reportMail("message/feedback-report", "Feedback-Type: "+strings.ToUpper(kind)+"\r\nUser-Agent: x/1\r\nVersion: 1\r\nOriginal-Rcpt-To: <anna@example.com>\r\n", ourHeaders)))
		wantEvent(t, kind, report, err, want)
	}
	report, err := newTestDSN(t).ReadMail([]byte(reportMail("message/feedback-report", "Feedback-Type: abuse\r\n", ourHeaders)))
	if err != nil || len(report.Receipts) != 1 || report.Receipts[0].Address != "" {
		t.Errorf("%v %+v", err, report)
	}
}

// Mails that are no notification have an empty report: bounce addresses get anything.
func TestDSN_OtherMails(t *testing.T) {
	inner := reportMail("message/delivery-status", "Reporting-MTA: x\r\n\r\nFinal-Recipient: rfc822;anna@example.com\r\nAction: failed\r\n", ourHeaders)
	nested := inner
	for i := range maxDepth + 1 {
		nested = strings.ReplaceAll("Content-Type: multipart/mixed; boundary=N\r\n\r\n--N\r\n"+nested+"\r\n--N--\r\n", "N", fmt.Sprintf("n%d", i))
	}
	for name, mail := range map[string]string{
		"out of office":        "To: bounces+" + testPush.String() + "@sender.example\r\nAuto-Submitted: auto-replied\r\nSubject: Out of office\r\n\r\nAction: failed\r\nStatus: 5.1.1\r\n",
		"an unknown charset":   "Content-Type: text/plain; charset=klingon\r\n\r\nx",
		"an unknown encoding":  "Content-Type: text/plain\r\nContent-Transfer-Encoding: x\r\n\r\nx",
		"no boundary":          "Content-Type: multipart/report\r\n\r\n--\r\nContent-Type: message/delivery-status\r\n\r\nx: y\r\n\r\nAction: failed\r\n",
		"an attached one":      "Content-Type: multipart/mixed; boundary=n\r\n\r\n--n\r\nContent-Type: message/rfc822\r\n\r\n" + inner + "\r\n--n--\r\n",
		"too deep":             nested,
		"too many parts":       "Content-Type: multipart/mixed; boundary=n\r\n\r\n" + strings.Repeat("--n\r\n\r\nx\r\n", maxParts) + "--n\r\n" + inner + "\r\n--n--\r\n",
		"a head and no body":   "Subject: x\r\n\r\n",
		"a status without any": reportMail("message/delivery-status", "", ourHeaders),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := newTestDSN(t).ReadMail([]byte(mail))
			if err != nil || !empty(report) {
				t.Errorf("%v %+v", err, report)
			}
		})
	}
}

func TestDSN_Refused(t *testing.T) {
	mail := reportMail("message/delivery-status", "Reporting-MTA: x\r\n\r\nFinal-Recipient: rfc822;anna@example.com\r\nAction: failed\r\n", ourHeaders)
	for name, r := range map[string]Request{
		"no token": {Body: []byte(mail)}, "another token": posted("Bearer other", mail), "a longer token": posted("Bearer bounce-token1", mail), "an empty token": posted("Bearer ", mail),
		"another scheme": posted("Basic bounce-token", mail), "the token alone": posted("bounce-token", mail),
		"no mail": posted("Bearer bounce-token", ""), "text": posted("Bearer bounce-token", "nonsense anna@example.com"),
		"too large": posted("Bearer bounce-token", mail+strings.Repeat("x", MaxBody)),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := newTestDSN(t).Read(t.Context(), r)
			checkRefused(t, report, err)
		})
	}
	if report, err := newTestDSN(t).Read(t.Context(), posted("bearer bounce-token", mail)); err != nil || len(report.Receipts) != 1 {
		t.Errorf("the right request: %v %+v", err, report)
	}
	if _, err := NewDSN("", bounceAddress); err == nil {
		t.Error("an empty token is accepted")
	}
}

// FuzzDSN holds that a request without the token yields nothing, and that any mail keeps what the types promise. The
// number of receipts is bounded.
func FuzzDSN(f *testing.F) {
	entries, err := os.ReadDir("testdata/dsn")
	if err != nil {
		f.Fatal(err)
	}
	for _, entry := range entries {
		f.Add("Bearer x", file(f, "dsn/"+entry.Name()))
	}
	f.Add("", []byte(reportMail("message/feedback-report", "Feedback-Type: abuse\r\nOriginal-Rcpt-To: a\r\n", ourHeaders)))
	f.Fuzz(func(t *testing.T, authorization string, mail []byte) {
		d := newTestDSN(t)
		d.token = "a token that no fuzzer guesses"
		report, err := d.Read(t.Context(), posted(authorization, string(mail)))
		checkRefused(t, report, err)
		report, err = d.ReadMail(mail)
		checkReport(t, report, err)
		if len(report.Receipts)+report.Foreign > 2*maxRecipients {
			t.Errorf("%d receipts", len(report.Receipts))
		}
	})
}
