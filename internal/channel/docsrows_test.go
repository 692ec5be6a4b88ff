package channel

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// docsRows returns the rows of the table in docs/channels.md that begins so:
// what happens, and the outcome.
func docsRows(t *testing.T, head string) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/channels.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), head+"\n|---|---|\n")
	if !found {
		t.Fatalf("docs/channels.md has no table %q", head)
	}
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 2 {
			break
		}
		rows[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSuffix(cells[1], " |")
	}
	return rows
}

// outcomeOf says a result in the words of the docs.
func outcomeOf(r Result) string {
	switch {
	case r.Outcome != push.Refused:
		return string(r.Outcome)
	case r.Unregistered:
		return "refused permanently, unregistered"
	case r.Final && r.OneAddress:
		return "refused permanently; only this address"
	case r.Final:
		return "refused permanently"
	case r.OneAddress:
		return "refused, tried again; only this address waits"
	}
	return "refused, tried again"
}

// Each row about answers over HTTP is true of each channel that speaks it.
func TestDocs_Statuses(t *testing.T) {
	t.Parallel()
	const (
		delivered, refused, unknown = "delivered", "refused, tried again", "unknown"
		permanentByWebhooks         = "refused; permanently by a webhook, tried again by all others"
		later                       = "refused, tried again, not before `Retry-After`"
	)
	statuses := func(codes ...int) (all []behavior) {
		for _, code := range codes {
			all = append(all, answers(code, "", "Location: /elsewhere"))
		}
		return all
	}
	soon := []behavior{answers(408, "", "Retry-After: 7"), answers(425, "", "Retry-After: 7"), answers(429, "", "Retry-After: 7"), answers(503, "", "Retry-After: 7")}
	const long, short = ample, brief // for providers that answer, and that hang
	cases := map[string]struct {
		outcome   string
		timeout   time.Duration
		behaviors []behavior
	}{
		"2xx":                                   {delivered, long, statuses(200, 201, 202, 204, 226)},
		"408, 425, 429; 503 with `Retry-After`": {later, long, soon},
		"3xx and other 4xx":                     {permanentByWebhooks, long, statuses(301, 302, 307, 308, 400, 404, 405, 409, 410, 413, 421, 422, 451)},
		"5xx, a broken connection, nonsense":    {unknown, long, append(statuses(500, 501, 502, 503, 504, 520), resets, drops, writes("220 hello\r\n", false))},
		"no answer":                             {unknown, short, []behavior{hangs(""), hangs("HTTP/1.1 200 OK\r\nContent-")}},
		"nothing was sent: no connection, a connection that was closing, no free stream of it, or it was too late to begin": {refused, time.Nanosecond, statuses(200)},
		"over HTTP/2, a refused stream, or one above the last that a `GOAWAY` names":                                        {refused, 0, nil}, // see TestUnprocessed
	}
	for row, outcome := range docsRows(t, "| answer | outcome |") {
		tt, known := cases[row]
		if !known || tt.outcome != outcome {
			t.Errorf("no case for the row %q: %q", row, outcome)
		}
		delete(cases, row)
		for _, s := range subjects() {
			for i, b := range tt.behaviors {
				if s.mail {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", s.name, row, i), func(t *testing.T) {
					t.Parallel()
					testDocsOfStatus(t, s, b, tt.timeout, outcome)
				})
			}
		}
	}
	if len(cases) > 0 {
		t.Errorf("docs/channels.md says nothing about %v", cases)
	}
}

func testDocsOfStatus(t *testing.T, s subject, b behavior, timeout time.Duration, outcome string) {
	c, _ := s.start(t, row{behavior: b}, testConnection(timeout))
	r := c.Send(t.Context(), s.push(), 1)
	want, wait := outcome, time.Duration(0)
	switch {
	case strings.HasSuffix(outcome, "`Retry-After`"):
		want, wait = "refused, tried again", 7*time.Second
	case strings.HasPrefix(outcome, "refused; permanently by a webhook") && s.coded:
		want = "refused, tried again"
	case strings.HasPrefix(outcome, "refused; permanently by a webhook"):
		want = "refused permanently"
	}
	if got := outcomeOf(r); got != want || r.RetryAfter != wait {
		t.Errorf("%s: %+v", got, r)
	}
}

// The channel follows each row about a provider's own code, with any status. A permanent code contradicts a 5xx.
func TestDocs_CodeOutcomes(t *testing.T) {
	body := map[string]func(code string) string{
		"sms":  func(code string) string { return `{"code":` + code + `,"message":"no"}` },
		"apns": func(code string) string { return `{"reason":"` + code + `"}` },
		"fcm": func(code string) string {
			if code == invalidToken {
				return `{"error":{"status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"field":"message.token"}]}]}}`
			}
			if code == projectQuota {
				return `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"errorCode":"QUOTA_EXCEEDED"},{"violations":[{"subject":"project:1","description":"x"}]}]}}`
			}
			return fcmError("INTERNAL", code)
		},
	}
	for _, s := range subjects() {
		if body[s.name] == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			var now atomic.Pointer[behavior]
			c, _ := s.start(t, row{behavior: func(conn *net.TCPConn, r received, stop <-chan struct{}) bool { return (*now.Load())(conn, r, stop) }}, testConnection(ample))
			table := map[string]map[string]meaning{"sms": twilioCodes(), "fcm": fcmCodes(), "apns": apnsReasons()}[s.name]
			for code, m := range table { // which TestDocsListTheCodes holds to the docs
				for _, status := range []int{400, 401, 403, 404, 410, 429, 500, 502, 503, 504} {
					b := answers(status, body[s.name](code))
					now.Store(&b)
					want := outcomeOf(Result{Outcome: push.Refused, Final: m.kind.final(), Unregistered: m.kind == unregistered, OneAddress: m.kind.oneAddress()})
					said := code + ": " + m.text
					if status >= 500 && m.kind.final() {
						want, said = "unknown", fmt.Sprint(status)
					}
					if r := c.Send(t.Context(), s.push(), 1); outcomeOf(r) != want || !strings.Contains(r.Error, said) {
						t.Errorf("%d %s: %s, want %s: %+v", status, code, outcomeOf(r), want, r)
					}
				}
			}
		})
	}
}

// Each row about a conversation with a mail server is true.
func TestDocs_Email(t *testing.T) {
	t.Parallel()
	const steps = "greeting STARTTLS AUTH MAIL RCPT DATA dot"
	every := func(steps string, replies ...string) (all []mailScript) {
		for step := range strings.FieldsSeq(steps) {
			for _, reply := range replies {
				all = append(all, mailScript{step: reply})
			}
		}
		return all
	}
	cases := map[string][]mailScript{
		"2xx to the end of the message":        every("dot", "250 2.0.0 Ok", "251 Ok", "200 Ok"),
		"4xx, at any step":                     every(steps, "421 4.3.2 going", "450 4.1.1 not now", "451 no", "499 no"),
		"55x to `RCPT`, `DATA` or the message": every("RCPT DATA dot", "550 no", "551 5.7.1 no", "552 no", "554 5.6.0 no", "559 no", "550 User anna not listed in Domino Directory"),
		"55x to them that blames the operator: see the next table": append(every("RCPT DATA dot", "550 5.7.64 no", "554 5.7.26 no", "550 5.7.606 no", "550 5.7.649 no"),
			every("RCPT DATA", "554 Relay access denied", "550 5.7.1 blocked using zen.spamhaus.org", "553 5.7.1 <a@b>: not owned by user", "550 Authentication required", "553 Relaying disallowed as a@b", "550 5.4.0 relay denied",
				"554 Message rejected: Email address is not verified.", "550 5.7.1 Client host rejected: cannot find your reverse hostname")...),
		"any other 5xx; 5xx to the greeting, `STARTTLS`, `AUTH` or `MAIL`": append(
			every("RCPT DATA dot", "500 no", "503 5.1.1 no", "530 no", "541 no", "571 no"), every("greeting STARTTLS AUTH MAIL", "500 no", "535 5.7.8 no", "550 5.1.1 no", "554 no")...),
		"no `STARTTLS`, a certificate that is not valid, a broken connection, a time-out, before the end of the message": every("greeting STARTTLS AUTH MAIL RCPT DATA", mailDrops, mailHangs),
		"a broken connection, a time-out or nonsense after it":                                                           every("dot", mailDrops, mailResets, mailHangs, "354 go on", "hello", "2500 Ok"),
		"55x with 5.1.1, 5.1.6 or 5.1.10 to `RCPT`":                                                                      every("RCPT", "550 5.1.1 gone", "551 5.1.6 moved", "556 5.1.10 null MX"),
	}
	for row, outcome := range docsRows(t, "| what happens | outcome |") {
		if cases[row] == nil {
			t.Errorf("no case for the row %q", row)
		}
		for _, script := range cases[row] {
			t.Run(row, func(t *testing.T) {
				t.Parallel()
				timeout := ample
				if strings.Contains(fmt.Sprint(script), mailHangs) {
					timeout = 2 * brief
				}
				server := newMailServer(t, mailSetup{script: script})
				r := newTestEmail(t, server, EmailConfig{Connection: testConnection(timeout)}).Send(t.Context(), emailPush(`{"body":"x"}`), 1)
				want, _, _ := strings.Cut(outcome, ":")
				if outcomeOf(r) != want || strings.Contains(outcome, "at fault") && !r.Down {
					t.Errorf("%q: %s, want %s: %+v", script, outcomeOf(r), want, r)
				}
			})
		}
		delete(cases, row)
	}
	if len(cases) > 0 {
		t.Errorf("docs/channels.md says nothing about %v", cases)
	}
}
