package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// The values of EmailEvents.Provider.
const (
	EventsSES      = "ses" // Amazon SES, through SNS
	EventsSendGrid = "sendgrid"
	EventsMailgun  = "mailgun"
	EventsPostmark = "postmark"
)

// EmailEvents are the settings of reports about sent e-mails: by a provider, and by mails.
type EmailEvents struct {
	Provider           string // one of the above; empty: none
	Topic              string // of SES: the ARN of a topic of SNS
	Key                Secret // of SendGrid, the public key in base64; of Mailgun, the signing key
	Username, Password Secret // of Postmark
	BounceToken        Secret // proves delivery status notifications; empty: none are read
}

// arnShape is the shape of the ARN of a topic in the form that package receipt accepts.
var arnShape = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):sns:[a-z0-9-]{3,32}:[0-9]{12}:[A-Za-z0-9_-]{1,256}$`)

// tokenShape is the shape of a token in a header.
var tokenShape = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{16,256}$`)

func (e *EmailEvents) settings(t *strictyaml.Table) {
	t.OneOf("events", optional, "the provider that reports deliveries, bounces and complaints: ses, sendgrid, mailgun or postmark; in this version nothing receives its reports yet", &e.Provider,
		EventsSES, EventsSendGrid, EventsMailgun, EventsPostmark)
	t.String("events_topic", optional, "with events: ses, the ARN of the topic of SNS", &e.Topic, shaped(arnShape, "the ARN of a topic, such as arn:aws:sns:eu-west-1:123456789012:mail"))
	t.Example("arn:aws:sns:eu-west-1:123456789012:mail")
	t.Secret("events_key", optional, "with events: sendgrid, the verification key of the signed event webhook; with mailgun, the signing key of webhooks; may use ${ENV_NAME}", &e.Key, checkNotEmpty)
	t.Secret("events_username", optional, "with events: postmark, the user name of the webhook's basic authentication; may use ${ENV_NAME}", &e.Username, checkUserName)
	t.Secret("events_password", optional, "with events: postmark, its password; may use ${ENV_NAME}", &e.Password, checkNotEmpty)
	t.Secret("bounce_token", optional, "the bearer token of those who post delivery status notifications; in this version nothing receives them yet; may use ${ENV_NAME}", &e.BounceToken, shaped(tokenShape, "16 to 256 of a-z, A-Z, 0-9 and ._~+/=-"))
	t.Check(e.check)
}

// eventsSettings lists the settings that some providers need, and others do not have.
var eventsSettings = []struct {
	name      string
	providers []string
}{
	{"events_topic", []string{EventsSES}},
	{"events_key", []string{EventsSendGrid, EventsMailgun}},
	{"events_username", []string{EventsPostmark}},
	{"events_password", []string{EventsPostmark}},
}

// check requires the settings of the provider, and no others.
func (e *EmailEvents) check(p strictyaml.Node) {
	if e.Provider == "" && p.Child("events").Given() {
		return // it is none of the words
	}
	for _, s := range eventsSettings {
		of, needed := p.Child(s.name), slices.Contains(s.providers, e.Provider)
		switch {
		case needed && !of.Given():
			of.BadKey("is required with events: %s", e.Provider)
		case !needed && of.Given():
			of.BadKey("is for events: %s only", strings.Join(s.providers, " or "))
		}
	}
	if e.Provider == EventsSendGrid && e.Key != "" && !isVerificationKey(string(e.Key)) {
		p.Child("events_key").BadKey("must be the verification key that SendGrid shows, which is a public key in base64")
	}
}

func isVerificationKey(s string) bool {
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil {
		return false
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	key, ok := parsed.(*ecdsa.PublicKey)
	return err == nil && ok && key.Curve == elliptic.P256()
}

// checkUserName accepts what basic authentication can carry.
func checkUserName(s string) string {
	return unless(strings.TrimSpace(s) != "" && !strings.Contains(s, ":"), "must not be empty or contain a colon")
}

// ofOtherEvents reports whether a secret is for the events of a provider that the object of a channel replaces.
func ofOtherEvents(secret string, is, was map[string]any) bool {
	return strings.HasPrefix(secret, "events_") && is["events"] != was["events"]
}
