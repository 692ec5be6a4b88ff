package config

import "regexp"

// SMSSettings are those of a channel of text messages.
type SMSSettings struct {
	AccountSID Secret // of Twilio

	// What proves it: the token, or a key with its secret.
	AuthToken               Secret
	APIKeySID, APIKeySecret Secret

	// Who sends: one of the two.
	From                string
	MessagingServiceSID string

	StatusCallback Secret // a URL; empty: none
	BaseURL        string // empty: Twilio's own
}

var (
	sidShape     = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`) // it becomes a part of a path
	numberShape  = regexp.MustCompile(`^(\+[1-9][0-9]{6,14}|[0-9]{3,8})$`)
	senderName   = regexp.MustCompile(`^[A-Za-z0-9 ]{1,11}$`)
	senderLetter = regexp.MustCompile(`[A-Za-z]`)
)

func (s *SMSSettings) fields() []field {
	return []field{
		{"account_sid", required, "the account at Twilio; may use ${ENV_NAME}", expanded(&s.AccountSID, checkSID)},
		{"auth_token", optional, "proves the account; may use ${ENV_NAME}", expanded(&s.AuthToken, checkNotEmpty)},
		{"api_key_sid", optional, "instead of auth_token, with api_key_secret; may use ${ENV_NAME}", expanded(&s.APIKeySID, checkSID)},
		{"api_key_secret", optional, "may use ${ENV_NAME}", expanded(&s.APIKeySecret, checkNotEmpty)},
		{"from", optional, "who sends: a number in E.164 form, a short code or a name", sender(&s.From)},
		{"messaging_service_sid", optional, "instead of from", shaped(&s.MessagingServiceSID, sidShape, "1 to 64 of a-z, A-Z, 0-9 and -")},
		{"status_callback", optional, "a URL that Twilio tells what became of a message; may use ${ENV_NAME}", expanded(&s.StatusCallback, checkURL)},
		{"base_url", optional, "instead of https://api.twilio.com", providerURL(&s.BaseURL)},
	}
}

func (c *Channel) checkSMS(p place) {
	p.oneOfTwo("auth_token", "api_key_sid")
	p.together("api_key_sid", "api_key_secret")
	p.together("api_key_secret", "api_key_sid")
	p.oneOfTwo("from", "messaging_service_sid")
	c.encrypted(p, "base_url", c.SMS.BaseURL)
}

// sender reads who sends. A number without its + is no name.
func sender(to *string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if ok && !numberShape.MatchString(s) && !(senderName.MatchString(s) && senderLetter.MatchString(s)) {
			p.fault("must be a number in E.164 form such as +4512345678, a short code, or a name of at most 11 letters, digits and spaces, with a letter")
			return
		}
		*to = s
	}}
}

func checkSID(s string) string {
	if !sidShape.MatchString(s) {
		return "must be 1 to 64 of a-z, A-Z, 0-9 and -"
	}
	return ""
}
