package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// WebhookSettings are the settings of a channel that posts to a URL.
type WebhookSettings struct {
	URL            Secret // absolute, http or https; its path may be a secret
	Secret         Secret // signs requests: whsec_ and base64, or used unchanged; empty: unsigned
	PreviousSecret Secret // also signs requests, while secrets are rotated
}

func (c *Channel) webhook(t *strictyaml.Table) {
	w := &c.Webhook
	t.Secret("url", required, "the URL to post to, http or https; may use ${ENV_NAME}", &w.URL, checkWebhookURL)
	t.Example("https://push.example.com/send")
	t.Secret("secret", optional, "signs requests (Standard Webhooks): whsec_ and base64, or at least 16 bytes, used unchanged; may use ${ENV_NAME}", &w.Secret, checkSigningSecret)
	t.Example("whsec_…")
	t.Secret("previous_secret", optional, "also signs requests, until all receivers have the new secret; may use ${ENV_NAME}", &w.PreviousSecret, checkSigningSecret)
	t.Needs("previous_secret", "secret")
}
