package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/push"
)

const (
	maxRetryAfter = 400 * 24 * time.Hour // longer than any push lives
	maxProviderID = 255
)

// judge turns the provider's answer into a result. The status line decides.
func (w *Webhook) judge(res *http.Response, body []byte) Result {
	wait, asked := retryAfter(res.Header.Get("Retry-After"), w.now())
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
		return Result{Outcome: push.Delivered, ProviderMessageID: providerID(body)}
	case code >= 300 && code < 400:
		return Result{Outcome: push.Refused, Final: true, Error: said(code) + "; redirects are not followed"}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests,
		code == http.StatusServiceUnavailable && asked:
		return Result{Outcome: push.Refused, RetryAfter: wait, Error: said(code)}
	case code >= 400 && code < 500:
		return Result{Outcome: push.Refused, Final: true, Error: said(code)}
	}
	return Result{Outcome: push.Unknown, Error: said(res.StatusCode)}
}

// said names the status in words of our own: the provider's may hold anything.
func said(code int) string {
	return strings.TrimSpace(fmt.Sprintf("the provider answered %d %s", code, http.StatusText(code)))
}

// retryAfter reads the header Retry-After, in seconds or as an HTTP date, and
// reports whether it could. A time gone by is no wait; a long one is cut to 24
// hours.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if header == "" {
		return 0, false
	}
	seconds, err := strconv.ParseUint(header, 10, 32)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range it gives the largest
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// providerID finds the provider's own id in its answer: the field id, or else
// message_id, of a JSON object, as text or number. Empty if there is none.
func providerID(body []byte) string {
	var answer struct {
		ID        json.RawMessage `json:"id"`
		MessageID json.RawMessage `json:"message_id"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	if id := idText(answer.ID); id != "" {
		return id
	}
	return idText(answer.MessageID)
}

// idText keeps a number as it is written: ids do not fit into a float.
func idText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		return printable(string(raw), maxProviderID)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return printable(text, maxProviderID)
}

// printable drops from s what cannot be printed, and cuts it to limit bytes
// without splitting a character.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
