package channel

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/sms"
)

const (
	maxSMS      = 1600                // characters, over all segments
	maxValidity = 36000 * time.Second // the maximum that Twilio stores a message
)

// e164 is the form of a telephone number with its country: at least seven and at most fifteen digits in all.
var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// SMSConfig configures an [SMS].
type SMSConfig struct {
	Connection

	AccountSID string // required
	User       string // an API key's SID; default: the account
	Password   string // its secret, or the account's auth token; required

	// The sender: one of them is required.
	From                string // a number in E.164 form, or another sender that Twilio knows
	MessagingServiceSID string

	StatusCallback string // a URL for Twilio's reports on a message; may be empty
	BaseURL        string // default: Twilio's
}

// SMS is a channel of text messages through Twilio's Messages API.
//
// https://www.twilio.com/docs/messaging/api/message-resource#create-a-message-resource
type SMS struct {
	cfg    SMSConfig
	url    *url.URL
	client *outbound.Client
	codes  map[string]meaning
}

// NewSMS returns a channel.
func NewSMS(cfg SMSConfig) (*SMS, error) {
	cfg.Connection = cfg.settled()
	u, err := parseURL(cmp.Or(cfg.BaseURL, "https://api.twilio.com"))
	switch {
	case err != nil:
		return nil, cfg.fault("base_url", err.Error())
	case cfg.AccountSID == "" || cfg.Password == "":
		return nil, cfg.fault("account_sid", "or what proves it is missing")
	case (cfg.From == "") == (cfg.MessagingServiceSID == ""):
		return nil, cfg.fault("from", "or messaging_service_sid: one of them is needed")
	}
	return &SMS{cfg: cfg, url: u.JoinPath("2010-04-01", "Accounts", cfg.AccountSID, "Messages.json"), client: cfg.client(false), codes: twilioCodes()}, nil
}

// Check requires a telephone number, and a text that is not too long.
func (s *SMS) Check(to string, m json.RawMessage) invalid.FieldErrors {
	var faults invalid.FieldErrors
	if !e164.MatchString(to) {
		faults = append(faults, wrongAddress(to, "a telephone number in E.164 form, such as +4512345678"))
	}
	body := open(m).text("body")
	switch n := utf8.RuneCountInString(body); {
	case n == 0:
		faults = append(faults, invalid.FieldError{Field: "message.body", Message: "must be a non-empty string, because an SMS has nothing else"})
	case n > maxSMS:
		faults = append(faults, tooLong("message.body", maxSMS, n, "characters"))
	}
	return faults
}

// Size returns the size of the text of a message. Twilio charges for its segments.
func (s *SMS) Size(m json.RawMessage) sms.Size { return sms.Measure(open(m).text("body")) }

// Send asks Twilio once to take a message.
func (s *SMS) Send(ctx context.Context, p push.Push, _ int) Result {
	if r, bad := unfit(s, p); bad {
		return r
	}
	req := outbound.Post(s.url, "application/x-www-form-urlencoded", []byte(s.form(p).Encode()))
	req.SetBasicAuth(cmp.Or(s.cfg.User, s.cfg.AccountSID), s.cfg.Password)
	// For proxies in between. Twilio itself sends a repeated message again.
	req.Header.Set("I-Twilio-Idempotency-Token", p.ID.String())
	r, answer := ask(ctx, s.client, req, s.cfg.Now)
	sid, code := twilioAnswer(answer)
	result := r.refined(sid, code, s.codes)
	result.Segments = s.Size(p.Message).Segments
	return result
}

func (s *SMS) form(p push.Push) url.Values {
	form := url.Values{"To": {p.To}, "Body": {open(p.Message).text("body")}}
	for name, value := range map[string]string{
		"From": s.cfg.From, "MessagingServiceSid": s.cfg.MessagingServiceSID, "StatusCallback": s.cfg.StatusCallback,
	} {
		if value != "" {
			form.Set(name, value)
		}
	}
	// An expired message must not leave Twilio's queue later either.
	if left := p.ExpiresAt.Sub(s.cfg.Now()); !p.ExpiresAt.IsZero() && left < maxValidity {
		form.Set("ValidityPeriod", strconv.Itoa(max(1, int(left/time.Second))))
	}
	return form
}
