package config

import "regexp"

// FCMSettings are those of a channel to Firebase Cloud Messaging.
type FCMSettings struct {
	// The JSON of a service account, or the path of the file that holds it.
	Credentials     Secret
	CredentialsFile string

	ProjectID string // empty: the service account's own
	BaseURL   string // empty: Google's own
	TokenURL  string // empty: that of the credentials
}

var projectShape = regexp.MustCompile(`^[a-z0-9:.-]{1,64}$`)

func (f *FCMSettings) fields() []field {
	return []field{
		{"credentials", optional, "the JSON of a service account that may send messages; may use ${ENV_NAME}", expanded(&f.Credentials, checkNotEmpty)},
		{"credentials_file", optional, "instead of credentials, the path of a file that holds them", filePath(&f.CredentialsFile)},
		{"project_id", optional, "the Firebase project; without it, that of the credentials", shaped(&f.ProjectID, projectShape, "the id of a project: 1 to 64 of a-z, 0-9, :, . and -")},
		{"base_url", optional, "instead of https://fcm.googleapis.com", providerURL(&f.BaseURL)},
		{"token_url", optional, "instead of the token_uri of the credentials", providerURL(&f.TokenURL)},
	}
}

func (c *Channel) checkFCM(p place) {
	p.oneOfTwo("credentials", "credentials_file")
	c.encrypted(p, "base_url", c.FCM.BaseURL)
	c.encrypted(p, "token_url", c.FCM.TokenURL)
}
