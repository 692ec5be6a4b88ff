package receipt

import (
	"net/http"
	"strings"
	"testing"
)

func postmarkRequest(user, password, body string) Request {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return Request{Header: r.Header, Body: []byte(body)}
}

func newTestPostmark(t testing.TB) *Postmark {
	t.Helper()
	p, err := NewPostmark("hook", "secret")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPostmark_Events(t *testing.T) {
	hardly := Receipt{State: Bounced, Hard: true, Suppress: HardBounce}
	with := func(r Receipt, code, reason string) []Receipt { r.Code, r.Reason = code, reason; return []Receipt{r} }
	bounce := func(kind string) string {
		return `"RecordType":"Bounce","Type":"` + kind + `","TypeCode":1,"Email":"anna@example.com","BouncedAt":"2026-02-12T12:42:55.0000000-05:00","Details":"550 no anna@example.com"`
	}
	change := func(members string) string {
		return `"RecordType":"SubscriptionChange","Recipient":"anna@example.com","ChangedAt":"2026-02-12T17:42:55Z",` + members
	}
	for event, want := range map[string][]Receipt{
		`"RecordType":"Delivery","Recipient":"anna@example.com","DeliveredAt":"2026-02-12T17:42:55Z"`:                       with(Receipt{State: Delivered}, "Delivery", ""),
		`"RecordType":"SpamComplaint","Type":"SpamComplaint","Email":"anna@example.com","BouncedAt":"2026-02-12T17:42:55Z"`: with(Receipt{State: Complained, Suppress: Complaint}, "SpamComplaint", "the recipient has marked it as spam"),
		bounce("HardBounce"):       with(hardly, "HardBounce", "there is no such mailbox"),
		bounce("BadEmailAddress"):  with(hardly, "BadEmailAddress", "not a valid address"),
		bounce("SoftBounce"):       with(Receipt{State: Bounced}, "SoftBounce", "the mailbox is full or cannot take it"),
		bounce("SMTPApiError"):     with(Receipt{State: Undelivered}, "SMTPApiError", "Postmark did not take it"),
		bounce("SpamComplaint"):    with(Receipt{State: Complained, Suppress: Complaint}, "SpamComplaint", "the recipient has marked it as spam"),
		bounce("Unsubscribe"):      with(Receipt{Unsubscribed: true}, "Unsubscribe", "the recipient asks to be removed"),
		bounce("New"):              with(Receipt{State: Bounced}, "New", "the mail server reports no reason"),
		bounce("anna@example.com"): with(Receipt{State: Bounced}, "", "the mail server reports no reason"),
		bounce("Transient"):        nil, bounce("AutoResponder"): nil,
		change(`"SuppressSending":true,"SuppressionReason":"ManualSuppression","Origin":"Recipient"`): with(Receipt{Unsubscribed: true}, "SubscriptionChange", "the recipient has unsubscribed at Postmark"),
		change(`"SuppressSending":true,"SuppressionReason":"ManualSuppression","Origin":"Customer"`):  nil,
		change(`"SuppressSending":true,"SuppressionReason":"HardBounce","Origin":"Recipient"`):        nil,
		change(`"SuppressSending":false,"SuppressionReason":null,"Origin":"Recipient"`):               nil,
		`"RecordType":"Open"`: nil, `"RecordType":"Click"`: nil, `"RecordType":"Inbound"`: nil,
	} {
		report, err := newTestPostmark(t).Read(t.Context(), postmarkRequest("hook", "secret", `{`+event+`,"MessageID":"883953f4-6105-42a2-a16a-77a8eac79483","Metadata":{"push":"`+testPush.String()+`","n":1}}`))
		wantEvent(t, event, report, err, want)
	}
	// Postmark's id of a message is a UUID, too.
	for _, metadata := range []string{`{}`, `null`, `[]`, `{"push":1}`, `{"other":"` + testPush.String() + `"}`} {
		report, err := newTestPostmark(t).Read(t.Context(), postmarkRequest("hook", "secret", `{"RecordType":"Delivery","MessageID":"`+testPush.String()+`","Metadata":`+metadata+`}`))
		if err != nil || report.Foreign != 1 || len(report.Receipts) != 0 {
			t.Errorf("%s: %v %+v", metadata, err, report)
		}
	}
}

func TestPostmark_Refused(t *testing.T) {
	const body = `{"RecordType":"Delivery","Metadata":{"push":"0190a000-0000-7000-8000-000000000042"}}`
	for name, r := range map[string]Request{
		"another user": postmarkRequest("other", "secret", body), "another password": postmarkRequest("hook", "other", body), "a longer password": postmarkRequest("hook", "secret1", body),
		"no credentials": {Body: []byte(body)}, "empty credentials": postmarkRequest("", "", body), "another scheme": {Body: []byte(body), Header: http.Header{"Authorization": {"Bearer aG9vazpzZWNyZXQ="}}},
		"no body": postmarkRequest("hook", "secret", ""), "text": postmarkRequest("hook", "secret", "x"), "an array": postmarkRequest("hook", "secret", "[]"), "no event": postmarkRequest("hook", "secret", "{}"),
		"too large": postmarkRequest("hook", "secret", body+strings.Repeat(" ", MaxBody)),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := newTestPostmark(t).Read(t.Context(), r)
			checkRefused(t, report, err)
		})
	}
	for _, of := range [][2]string{{"", ""}, {"hook", ""}, {"", "secret"}} {
		if _, err := NewPostmark(of[0], of[1]); err == nil {
			t.Errorf("%q is accepted", of)
		}
	}
}

// FuzzPostmark holds that a request without the credentials yields nothing, and that one with them keeps what the types
// promise.
func FuzzPostmark(f *testing.F) {
	f.Add("Basic x", `{"RecordType":"Bounce","Type":"HardBounce","Email":"anna@example.com","Metadata":{"push":"0190a000-0000-7000-8000-000000000042"}}`)
	f.Add("", `{"RecordType":"SubscriptionChange"}`)
	f.Fuzz(func(t *testing.T, authorization, body string) {
		p := Postmark{"a user", "a password that no fuzzer guesses"}
		report, err := p.Read(t.Context(), Request{Body: []byte(body), Header: http.Header{"Authorization": {authorization}}})
		checkRefused(t, report, err)
		report, err = newTestPostmark(t).Read(t.Context(), postmarkRequest("hook", "secret", body))
		checkReport(t, report, err)
	})
}
