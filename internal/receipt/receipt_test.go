package receipt

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The highest state stays, in any order of the reports, and also if each comes twice.
func TestState_Over(t *testing.T) {
	order := []State{"", Undelivered, Delivered, Bounced, Complained}
	for i, a := range order {
		for j, b := range order {
			if a.Over(b) != (i > j) {
				t.Errorf("%q over %q: %t", a, b, a.Over(b))
			}
		}
	}
	var permute func(done, left []State)
	permute = func(done, left []State) {
		if len(left) > 0 {
			for i := range left {
				permute(append(slices.Clone(done), left[i], left[i]), slices.Delete(slices.Clone(left), i, i+1))
			}
			return
		}
		var state State
		for _, s := range done {
			if s.Over(state) {
				state = s
			}
		}
		if state != Complained {
			t.Errorf("%v ends in %q", done, state)
		}
	}
	permute(nil, order)
}

func TestPushID_OfMessages(t *testing.T) {
	id := testPush.String()
	verp := newEnvelope("Bounces+{id}@example.com")
	for _, tt := range []struct {
		name  string
		got   uuid.UUID
		known bool
	}{
		{"our Message-ID", messageIDPush("<" + id + "@example.com>"), true},
		{"without brackets", messageIDPush(id + "@mail.example.org"), true},
		{"between spaces", messageIDPush("  <" + id + "@x>\r\n"), true},
		{"of another program", messageIDPush("<CAF+x@mail.example.com>"), false},
		{"without a domain", messageIDPush(id), false},
		{"a UUID in braces", messageIDPush("<{" + id + "}@example.com>"), false},
		{"a URN", messageIDPush("<urn:uuid:" + id + "@example.com>"), false},
		{"more before it", messageIDPush("<x" + id + "@example.com>"), false},
		{"our envelope", verp.push("bounces+" + id + "@example.com"), true},
		{"in capitals", verp.push("<BOUNCES+" + id + "@EXAMPLE.COM>"), true},
		{"without dashes", verp.push("bounces+0190a00000007000800000000000" + "0042@example.com"), true},
		{"of another domain", verp.push("bounces+" + id + "@example.org"), false},
		{"of another mailbox", verp.push("other+" + id + "@example.com"), false},
		{"without an id", verp.push("bounces+@example.com"), false},
		{"without a pattern", newEnvelope("").push("bounces+" + id + "@example.com"), false},
		{"a pattern without an id", newEnvelope("bounces@example.com").push("bounces@example.com"), false},
	} {
		if want := map[bool]uuid.UUID{true: testPush}[tt.known]; tt.got != want {
			t.Errorf("%s: %v", tt.name, tt.got)
		}
	}
}

// The providers return the header of a mail in their events: Postmark what follows X-PM-Metadata- and the value, SendGrid
// the members of unique_args.
func TestMailHeader_Returned(t *testing.T) {
	name, value := MailHeader("postmark", testPush)
	key, ok := strings.CutPrefix(name, "X-PM-Metadata-")
	report, err := newTestPostmark(t).Read(t.Context(), postmarkRequest("hook", "secret", `{"RecordType":"Delivery","Metadata":{"`+key+`":"`+value+`"}}`))
	if !ok || err != nil || len(report.Receipts) != 1 || report.Receipts[0].Push != testPush {
		t.Errorf("%s: %s: %v %+v", name, value, err, report)
	}
	var smtpapi struct {
		Args map[string]string `json:"unique_args"`
	}
	name, value = MailHeader("sendgrid", testPush)
	if err := json.Unmarshal([]byte(value), &smtpapi); err != nil || name != "X-SMTPAPI" {
		t.Fatalf("%s: %s: %v", name, value, err)
	}
	s, err := NewSendGrid(publicKey(sendgridKey().Public()))
	if err != nil {
		t.Fatal(err)
	}
	smtpapi.Args["event"] = "spamreport"
	report, err = s.Read(t.Context(), signSendGrid("["+string(must(json.Marshal(smtpapi.Args)))+"]"))
	if err != nil || len(report.Receipts) != 1 || report.Receipts[0].Push != testPush {
		t.Errorf("%v %+v", err, report)
	}
	for _, events := range []string{"ses", "mailgun", ""} {
		if name, value := MailHeader(events, testPush); name != "" || value != "" {
			t.Errorf("%s: %s: %s", events, name, value)
		}
	}
}

// A time that no provider can mean is unknown: the years before 2000, and those that do not fit into a database.
func TestSeconds_Settled(t *testing.T) {
	for _, tt := range []struct {
		seconds float64
		want    time.Time
	}{
		{1770918175.592, time.Date(2026, 2, 12, 17, 42, 55, 592e6, time.UTC)},
		{1770918175, time.Date(2026, 2, 12, 17, 42, 55, 0, time.UTC)},
		{0, time.Time{}}, {-1, time.Time{}}, {1, time.Time{}}, {1e11, time.Time{}}, {1e300, time.Time{}}, {9e10, time.Time{}},
	} {
		if got := settled(seconds(tt.seconds)); !got.Equal(tt.want) || got.Location() != time.UTC {
			t.Errorf("%f is %v", tt.seconds, got)
		}
	}
}
