package config

import (
	"regexp"
	"strings"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// APNsSettings are the settings of a channel to Apple's Push Notification service.
type APNsSettings struct {
	// The text of a .p8 file, or its path.
	Key     Secret
	KeyFile string

	KeyID, TeamID string // ten characters each
	Topic         string // the app's bundle id
	BaseURL       string // empty: Apple's own, for production
}

var (
	appleShape = regexp.MustCompile(`^[A-Z0-9]{10}$`)
	topicShape = regexp.MustCompile(`^[A-Za-z0-9.-]{1,255}$`)
)

func (c *Channel) apns(t *strictyaml.Table) {
	a := &c.APNs
	c.secretOrFile(t, secretFile{
		name: "key", meaning: "the text of the .p8 file from Apple's developer account; may use ${ENV_NAME}", to: &a.Key,
		file: "key_file", fileMeaning: "instead of key, the path of that file", path: &a.KeyFile,
	})
	t.String("key_id", required, "the key's id, ten characters", &a.KeyID, shaped(appleShape, "ten of A-Z and 0-9"))
	t.Example("ABCDE12345")
	t.String("team_id", required, "the developer account's team, ten characters", &a.TeamID, shaped(appleShape, "ten of A-Z and 0-9"))
	t.Example("ZYXWV98765")
	t.String("topic", required, "the app's bundle id", &a.Topic, shaped(topicShape, "a bundle id such as com.example.app"))
	t.Example("com.example.shop")
	t.HiddenString("base_url", optional, "instead of https://api.push.apple.com; apps in development need https://api.sandbox.push.apple.com", &a.BaseURL, checkProviderURL)
	t.Example("https://api.sandbox.push.apple.com")
	t.Check(func(p strictyaml.Node) {
		if a.BaseURL != "" && !strings.HasPrefix(a.BaseURL, "https:") {
			p.Child("base_url").BadValue("must begin with https://: APNs speaks HTTP/2 over TLS only")
		}
	})
}
