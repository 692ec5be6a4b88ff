package receipt

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const sesMail = `"mail":{"messageId":"0102-ses","destination":["anna@example.com","bert@example.com"],"headers":[{"name":"From","value":"x"},{"name":"Message-ID","value":"<0190a000-0000-7000-8000-000000000042@example.com>"}]}`

func readSES(t *testing.T, message string) (Report, error) {
	t.Helper()
	report, err := newTestSES(t, fetches(snsPEM())).Read(t.Context(), notification(message).signed())
	checkReport(t, report, err)
	return report, err
}

func TestSES_Events(t *testing.T) {
	at := time.Date(2026, 2, 12, 17, 42, 55, 0, time.UTC)
	bounce := func(kind, sub, recipients string) string {
		return `{"eventType":"Bounce",` + sesMail + `,"bounce":{"bounceType":"` + kind + `","bounceSubType":"` + sub + `","bouncedRecipients":[` + recipients + `],"timestamp":"2026-02-12T17:42:55Z"}}`
	}
	complaint := func(members string) string {
		return `{"notificationType":"Complaint",` + sesMail + `,"complaint":{"complainedRecipients":[{"emailAddress":"anna@example.com"}],"timestamp":"2026-02-12T18:42:55+01:00"` + members + `}}`
	}
	const anna = `{"emailAddress":"anna@example.com","action":"failed","status":"5.1.1"}`
	receipt := func(state State, code, reason string) Receipt {
		return Receipt{Push: testPush, State: state, Code: code, Reason: reason, Address: testAddress, At: at}
	}
	hardly := func(r Receipt) Receipt { r.Hard, r.Suppress = true, HardBounce; return r }
	suppressed := func(r Receipt, why string) Receipt { r.Suppress = why; return r }
	var permanent, full, unknown, spam = "the recipient's mail server refuses it permanently", "the mailbox is full", "it bounced for an unknown reason", "the recipient has marked it as spam"
	bert := hardly(receipt(Bounced, "Permanent/General", permanent))
	bert.Address = "bert@example.com"
	late := receipt(Undelivered, "Reject", "SES has found a virus")
	late.At = time.Time{}
	second := late
	second.Address = "bert@example.com"
	for name, tt := range map[string]struct {
		message string
		want    []Receipt
	}{
		"permanent":        {bounce("Permanent", "General", anna), []Receipt{hardly(receipt(Bounced, "Permanent/General", permanent))}},
		"two recipients":   {bounce("Permanent", "General", anna+`,{"emailAddress":"bert@example.com"}`), []Receipt{hardly(receipt(Bounced, "Permanent/General", permanent)), bert}},
		"a new subtype":    {bounce("Permanent", "New", anna), []Receipt{receipt(Bounced, "Permanent/New", unknown)}},
		"full":             {bounce("Transient", "MailboxFull", anna), []Receipt{receipt(Bounced, "Transient/MailboxFull", full)}},
		"transient":        {bounce("Transient", "General", anna), []Receipt{receipt(Bounced, "Transient/General", "the recipient's mail server refuses it for now")}},
		"out of office":    {bounce("Transient", "General", `{"emailAddress":"anna@example.com"}`), nil},
		"unknown":          {bounce("Undetermined", "Undetermined", anna), []Receipt{receipt(Bounced, "Undetermined/Undetermined", unknown)}},
		"a hostile type":   {bounce("anna@example.com", "x", anna), []Receipt{receipt(Bounced, "", unknown)}},
		"unsubscribed":     {bounce("Permanent", "UnsubscribedRecipient", anna), []Receipt{{Push: testPush, State: Undelivered, Unsubscribed: true, Code: "Permanent/UnsubscribedRecipient", Reason: "the recipient has unsubscribed at SES", Address: testAddress, At: at}}},
		"complaint":        {complaint(``), []Receipt{suppressed(receipt(Complained, "Complaint", spam), Complaint)}},
		"abuse":            {complaint(`,"complaintSubType":null,"complaintFeedbackType":"abuse"`), []Receipt{suppressed(receipt(Complained, "Complaint/abuse", spam), Complaint)}},
		"a new complaint":  {complaint(`,"complaintFeedbackType":"new"`), []Receipt{suppressed(receipt(Complained, "Complaint/new", "the recipient has complained"), Complaint)}},
		"not spam":         {complaint(`,"complaintFeedbackType":"not-spam"`), nil},
		"listed":           {complaint(`,"complaintSubType":"OnAccountSuppressionList"`), []Receipt{suppressed(receipt(Undelivered, "Complaint/OnAccountSuppressionList", "the recipient has complained before, and is on the list of the account"), Complaint)}},
		"delivery":         {`{"eventType":"Delivery",` + sesMail + `,"delivery":{"recipients":["anna@example.com"],"timestamp":"2026-02-12T17:42:55Z"}}`, []Receipt{receipt(Delivered, "Delivery", "")}},
		"reject":           {`{"eventType":"Reject",` + sesMail + `,"reject":{"reason":"Bad content"}}`, []Receipt{late, second}},
		"send":             {`{"eventType":"Send",` + sesMail + `}`, nil},
		"late":             {`{"eventType":"DeliveryDelay",` + sesMail + `}`, nil},
		"a test":           {"Successfully validated SNS topic for Amazon SES event publishing.", nil},
		"an alarm":         {`{"AlarmName":"x"}`, nil},
		"an array":         {`[]`, nil},
		"mistyped members": {`{"eventType":"Delivery",` + sesMail + `,"delivery":{"recipients":["anna@example.com"],"timestamp":"2026-02-12T17:42:55Z"},"bounce":[]}`, []Receipt{receipt(Delivered, "Delivery", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := readSES(t, tt.message)
			if diff := cmp.Diff(Report{Receipts: tt.want}, report); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// Our Message-ID is in the original headers, or in their summary. SES has an id of its own.
func TestSES_Push(t *testing.T) {
	for _, tt := range []struct {
		mail string
		ours bool
	}{
		{sesMail, true},
		{`"mail":{"commonHeaders":{"messageId":"<` + testPush.String() + `@example.com>","from":["x"]}}`, true},
		{`"mail":{"headers":[{"name":"message-id","value":"<` + testPush.String() + `@x>"}]}`, true},
		{`"mail":{"messageId":"` + testPush.String() + `"}`, false},
		{`"mail":{"headers":[{"name":"Subject","value":"<` + testPush.String() + `@x>"}]}`, false},
		{`"mail":{"headers":[{"name":"Message-ID","value":"<CAF@mail.example.com>"}]}`, false},
		{`"mail":null`, false}, {`"x":1`, false},
	} {
		report, err := readSES(t, `{"eventType":"Delivery",`+tt.mail+`,"delivery":{"recipients":["anna@example.com"]}}`)
		if err != nil || (len(report.Receipts) == 1) != tt.ours || (report.Foreign == 1) == tt.ours {
			t.Errorf("%s: %v %+v", tt.mail, err, report)
		}
	}
}

// A confirmation of our topic returns its URL, if it is one of SNS. Visiting it is the caller's work.
func TestSES_Confirm(t *testing.T) {
	right := snsHost + "/?Action=ConfirmSubscription&TopicArn=" + snsARN + "&Token=t"
	for confirm, ok := range map[string]bool{
		right: true,
		strings.Replace(right, "https", "http", 1):                      false,
		strings.Replace(right, "amazonaws.com", "example.com", 1):       false,
		strings.Replace(right, ".com/", ".com.example.com/", 1):         false,
		strings.Replace(right, ".com/", ".com@example.com/", 1):         false,
		strings.Replace(right, ".com/", ".com/x/", 1):                   false,
		strings.Replace(right, "ConfirmSubscription", "DeleteTopic", 1): false,
		strings.Replace(right, "ses-events&", "other&", 1):              false,
		strings.Replace(right, "ConfirmSubscription&", "x&y=z;&", 1):    false,
		right + strings.Repeat("x", 3000):                               false,
		"":                                                              false,
	} {
		report, err := newTestSES(t, fetches(snsPEM())).Read(t.Context(), subscription(confirm).signed())
		if ok {
			if err != nil || report.Confirm != right {
				t.Errorf("%v %+v", err, report)
			}
			continue
		}
		checkRefused(t, report, err)
	}
	e := subscription(right)
	e.Type = snsUnsubscribed
	if report, err := newTestSES(t, fetches(snsPEM())).Read(t.Context(), e.signed()); err != nil || !empty(report) {
		t.Errorf("%v %+v", err, report)
	}
}

// FuzzSES holds that an unsigned message yields nothing and makes no request, and that a signed one keeps what the types
// promise.
func FuzzSES(f *testing.F) {
	for _, line := range lines[struct{ Body string }](f, "sns.jsonl") {
		f.Add([]byte(line.Body), "")
		var e snsEnvelope
		if json.Unmarshal([]byte(line.Body), &e) == nil {
			f.Add([]byte(line.Body), e.Message)
		}
	}
	reader := newTestSES(f, fetches(snsPEM()))
	f.Fuzz(func(t *testing.T, body []byte, message string) {
		report, err := reader.Read(t.Context(), Request{Body: body})
		if err == nil || !empty(report) {
			t.Errorf("%v %+v", err, report)
		}
		checkReport(t, sesReport(message), nil)
	})
}
