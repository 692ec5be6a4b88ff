package config

import (
	"regexp"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// FCMSettings are the settings of a channel to Firebase Cloud Messaging.
type FCMSettings struct {
	// The JSON of a service account, or the path of the file that holds it.
	Credentials     Secret
	CredentialsFile string

	ProjectID string // empty: the service account's own
	BaseURL   string // empty: Google's own
	TokenURL  string // empty: the token_uri of the credentials
}

var projectShape = regexp.MustCompile(`^[a-z0-9:.-]{1,64}$`)

func (c *Channel) fcm(t *strictyaml.Table) {
	f := &c.FCM
	c.secretOrFile(t, secretFile{
		name: "credentials", meaning: "the JSON of a service account that may send messages; may use ${ENV_NAME}", to: &f.Credentials,
		file: "credentials_file", fileMeaning: "instead of credentials, the path of a file that holds them", path: &f.CredentialsFile,
	})
	t.String("project_id", optional, "the Firebase project; without it, the project of the credentials", &f.ProjectID, shaped(projectShape, "the id of a project: 1 to 64 of a-z, 0-9, :, . and -"))
	t.Example("shop-12345")
	t.HiddenString("base_url", optional, "instead of https://fcm.googleapis.com", &f.BaseURL, checkProviderURL)
	t.Example("https://fcm.googleapis.com")
	t.HiddenString("token_url", optional, "instead of the token_uri of the credentials", &f.TokenURL, checkProviderURL)
	t.Example("https://oauth2.googleapis.com/token")
	t.Check(c.encrypted("base_url", &f.BaseURL))
	t.Check(c.encrypted("token_url", &f.TokenURL))
}
