package config

import (
	"regexp"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

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

const sidForm = "1 to 64 of a-z, A-Z, 0-9 and -"

func (c *Channel) sms(t *strictyaml.Table) {
	s := &c.SMS
	t.Secret("account_sid", required, "the account at Twilio; may use ${ENV_NAME}", &s.AccountSID, shaped(sidShape, sidForm))
	t.Secret("auth_token", optional, "proves the account; may use ${ENV_NAME}", &s.AuthToken, checkNotEmpty)
	t.Secret("api_key_sid", optional, "instead of auth_token, with api_key_secret; may use ${ENV_NAME}", &s.APIKeySID, shaped(sidShape, sidForm))
	t.Secret("api_key_secret", optional, "may use ${ENV_NAME}", &s.APIKeySecret, checkNotEmpty)
	t.String("from", optional, "who sends: a number in E.164 form, a short code or a name", &s.From, checkSender)
	t.String("messaging_service_sid", optional, "instead of from", &s.MessagingServiceSID, shaped(sidShape, sidForm))
	t.Secret("status_callback", optional, "a URL that Twilio tells what became of a message; may use ${ENV_NAME}", &s.StatusCallback, checkURL)
	t.HiddenString("base_url", optional, "instead of https://api.twilio.com", &s.BaseURL, checkProviderURL)
	t.Either("auth_token", "api_key_sid")
	t.Needs("api_key_sid", "api_key_secret")
	t.Needs("api_key_secret", "api_key_sid")
	t.Either("from", "messaging_service_sid")
	t.Check(c.encrypted("base_url", &s.BaseURL))
}

// checkSender takes no number without its + for a name.
func checkSender(s string) string {
	ok := numberShape.MatchString(s) || senderName.MatchString(s) && senderLetter.MatchString(s)
	return unless(ok, "must be a number in E.164 form such as +4512345678, a short code, or a name of at most 11 letters, digits and spaces, with a letter")
}
