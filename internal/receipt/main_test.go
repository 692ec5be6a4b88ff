package receipt

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/uuid"
)

// testPush is the push of all requests in testdata.
var testPush = uuid.MustParse("0190a000-0000-7000-8000-000000000042")

// Addresses of persons in the tests. No code, no reason and no error may hold a part of one.
const (
	testNumber  = "+4587654321"
	testAddress = "anna@example.com"
)

// lines reads a file of testdata with an object in each line.
func lines[T any](t testing.TB, name string) (all []T) {
	t.Helper()
	for line := range strings.Lines(string(file(t, name))) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
	return all
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// form returns a request with a form.
func form(url, body, signature string) Request {
	return Request{URL: url, Body: []byte(body), Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "X-Twilio-Signature": {signature}}}
}

// checkRefused requires that a request is refused and yields nothing.
func checkRefused(t testing.TB, report Report, err error) {
	t.Helper()
	if !errors.Is(err, ErrRefused) || !empty(report) || strings.Contains(err.Error(), "example.com") {
		t.Errorf("the error is %v, the report is %+v", err, report)
	}
}

func empty(r Report) bool {
	return len(r.Receipts) == 0 && r.Foreign == 0 && r.Inbound == nil && r.Confirm == ""
}

// checkReport holds every report to what the documentation of its types promises.
func checkReport(t testing.TB, report Report, err error) {
	t.Helper()
	if err != nil {
		if !empty(report) || !errors.Is(err, ErrRefused) && !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "@") {
			t.Errorf("the error is %v, the report is %+v", err, report)
		}
		return
	}
	for _, r := range report.Receipts {
		printable := strings.IndexFunc(r.Code+r.Reason+r.Address, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
		if r.Push == uuid.Nil || !printable || len(r.Code) > maxCode || len(r.Address) > maxAddress || strings.Contains(r.Code+r.Reason, "@") {
			t.Errorf("%+v", r)
		}
		if r.State == "" && !r.Unsubscribed || r.Hard && (r.State != Bounced || r.Suppress != HardBounce) || (r.Suppress == HardBounce) != r.Hard {
			t.Errorf("%+v", r)
		}
		if !r.At.IsZero() && (r.At.Year() < 2000 || r.At.Year() > 2100) {
			t.Errorf("the time is %v", r.At)
		}
	}
}
