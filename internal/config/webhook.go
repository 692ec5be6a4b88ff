package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// WebhookSettings are those of a channel that posts to a URL.
type WebhookSettings struct {
	URL            Secret // absolute, http or https; its path may be a secret
	Secret         Secret // signs: whsec_ and base64, or used as it is; empty: unsigned
	PreviousSecret Secret // signs as well, while secrets are rotated
}

func (c *Channel) webhook(t *strictyaml.Table) {
	w := &c.Webhook
	t.Secret("url", required, "where it posts to, http or https; may use ${ENV_NAME}", &w.URL, checkWebhookURL)
	t.Secret("secret", optional, "signs what it posts (Standard Webhooks): whsec_ and base64, or at least 16 bytes used as they are; may use ${ENV_NAME}", &w.Secret, checkSigningSecret)
	t.Secret("previous_secret", optional, "signs as well, until all receivers know the secret that replaces it; may use ${ENV_NAME}", &w.PreviousSecret, checkSigningSecret)
	t.Needs("previous_secret", "secret")
}
