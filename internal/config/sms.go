package config

import (
	"regexp"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// SMSSettings are the settings of a channel for text messages.
type SMSSettings struct {
	AccountSID Secret // of Twilio

	// The credentials: the token, or a key with its secret.
	AuthToken               Secret
	APIKeySID, APIKeySecret Secret

	// The sender: one of the two.
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

const sidForm = "1 to 64 of a-z, A-Z, 0-9 and -"

func (c *Channel) sms(t *strictyaml.Table) {
	s := &c.SMS
	t.Secret("account_sid", required, "the account at Twilio; may use ${ENV_NAME}", &s.AccountSID, shaped(sidShape, sidForm))
	t.Example("AC…")
	t.Secret("auth_token", optional, "proves the account; may use ${ENV_NAME}", &s.AuthToken, checkNotEmpty)
	t.Secret("api_key_sid", optional, "instead of auth_token, with api_key_secret; may use ${ENV_NAME}", &s.APIKeySID, shaped(sidShape, sidForm))
	t.Secret("api_key_secret", optional, "the secret of that key; may use ${ENV_NAME}", &s.APIKeySecret, checkNotEmpty)
	t.String("from", optional, "the sender: a number in E.164 form, a short code or a name", &s.From, checkSender)
	t.Example("+4512345678")
	t.String("messaging_service_sid", optional, "instead of from", &s.MessagingServiceSID, shaped(sidShape, sidForm))
	t.Example("MG…")
	t.Secret("status_callback", optional, "a URL that gets Twilio's report about each message; may use ${ENV_NAME}", &s.StatusCallback, checkURL)
	t.Example("https://example.com/twilio")
	t.HiddenString("base_url", optional, "instead of https://api.twilio.com", &s.BaseURL, checkProviderURL)
	t.Example("https://api.twilio.com")
	t.Either("auth_token", "api_key_sid")
	t.Needs("api_key_sid", "api_key_secret")
	t.Needs("api_key_secret", "api_key_sid")
	t.Either("from", "messaging_service_sid")
	t.Check(c.encrypted("base_url", &s.BaseURL))
}

// checkSender accepts a number, a short code or a name. A long number without its + is no name.
func checkSender(s string) string {
	ok := numberShape.MatchString(s) || senderName.MatchString(s) && senderLetter.MatchString(s)
	return unless(ok, "must be a number in E.164 form such as +4512345678, a short code, or a name of at most 11 letters, digits and spaces, with a letter")
}
