package receipt

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base64"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/outbound"
)

// Twilio reads Twilio's status callbacks and inbound messages.
//
// https://www.twilio.com/docs/usage/security#validating-requests
type Twilio struct{ tokens [][]byte }

// NewTwilio returns a reader that accepts signatures by any of the tokens. Empty tokens are left out.
func NewTwilio(tokens ...string) *Twilio {
	t := &Twilio{}
	for _, token := range tokens {
		if token != "" {
			t.tokens = append(t.tokens, []byte(token))
		}
	}
	return t
}

// Callback returns the URL for the status callbacks of one attempt. The signature of the callback includes it.
func Callback(callbackURL string, push uuid.UUID, attempt int) string {
	return callbackURL + "?push=" + push.String() + "&attempt=" + strconv.Itoa(attempt)
}

// Read proves and reads a request.
func (t *Twilio) Read(_ context.Context, r Request) (Report, error) {
	if err := r.check(); err != nil {
		return Report{}, err
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return Report{}, refused("the body is not a form")
	}
	form, err := url.ParseQuery(string(r.Body))
	if err != nil {
		return Report{}, refused("the form is not readable")
	}
	to, err := url.Parse(r.URL)
	if err != nil || to.Host == "" {
		return Report{}, refused("the URL is not readable")
	}
	if !t.signed(r.Header.Get("X-Twilio-Signature"), r.URL, form) {
		return Report{}, refused("the signature does not match")
	}
	if message, ok := inbound(form); ok {
		return Report{Inbound: &message}, nil
	}
	return status(form, to.Query()), nil
}

// signed reports whether one of the tokens made the signature. Twilio includes or leaves out the standard port of a URL,
// depending on its version.
func (t *Twilio) signed(signature, to string, form url.Values) bool {
	var pairs strings.Builder
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := slices.Sorted(slices.Values(form[name]))
		for _, value := range slices.Compact(values) {
			pairs.WriteString(name + value)
		}
	}
	matches := 0
	for _, token := range t.tokens {
		for _, spelling := range spellings(to) {
			mac := hmac.New(sha1.New, token)
			mac.Write([]byte(spelling + pairs.String()))
			matches |= subtle.ConstantTimeCompare([]byte(base64.StdEncoding.EncodeToString(mac.Sum(nil))), []byte(signature))
		}
	}
	return matches == 1
}

// spellings returns a URL as it is, and without its port, or with the standard one if it has none.
func spellings(to string) []string {
	scheme, rest, found := strings.Cut(to, "://")
	standard, known := map[string]string{"https": ":443", "http": ":80"}[scheme]
	if !found || !known {
		return nil
	}
	host, path := rest, ""
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		host, path = rest[:at], rest[at:]
	}
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		return []string{to, scheme + "://" + host[:colon] + path}
	}
	return []string{to, scheme + "://" + host + standard + path}
}

// status reads a status callback. The push comes from the URL, which is signed.
func status(form, query url.Values) (report Report) {
	state := form.Get("MessageStatus")
	if state == "" {
		state = form.Get("SmsStatus")
	}
	m := twilioStatuses()[state]
	code := form.Get("ErrorCode")
	if m.kind == undelivered && code != "" && code != "0" {
		if known, ok := twilioCodes()[code]; ok {
			m = known
		}
	} else {
		code = ""
	}
	attempt, err := strconv.Atoi(query.Get("attempt"))
	if err != nil || attempt < 0 || attempt > 1000 {
		attempt = 0
	}
	receipts := m.receipts(pushID(query.Get("push")), code, form.Get("To"), time.Time{})
	for i := range receipts {
		receipts[i].Attempt = attempt
	}
	report.add(receipts...)
	return report
}

// inbound reads a message to us.
func inbound(form url.Values) (Inbound, bool) {
	_, hasText := form["Body"]
	if form.Get("MessageStatus") != "" || !hasText || form.Get("From") == "" {
		return Inbound{}, false
	}
	return Inbound{
		ID: outbound.Printable(form.Get("MessageSid"), maxCode), Text: form.Get("Body"),
		From: outbound.Printable(form.Get("From"), maxAddress), To: outbound.Printable(form.Get("To"), maxAddress),
		Keyword: keyword(form.Get("OptOutType"), form.Get("Body")),
	}, true
}
