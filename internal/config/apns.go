package config

import (
	"regexp"
	"strings"
)

// APNsSettings are those of a channel to Apple's Push Notification service.
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

func (a *APNsSettings) fields() []field {
	return []field{
		{"key", optional, "the text of the .p8 file from Apple's developer account; may use ${ENV_NAME}", expanded(&a.Key, checkNotEmpty)},
		{"key_file", optional, "instead of key, the path of that file", filePath(&a.KeyFile)},
		{"key_id", required, "the key's id, ten characters", shaped(&a.KeyID, appleShape, "ten of A-Z and 0-9")},
		{"team_id", required, "the developer account's team, ten characters", shaped(&a.TeamID, appleShape, "ten of A-Z and 0-9")},
		{"topic", required, "the app's bundle id", shaped(&a.Topic, topicShape, "a bundle id such as com.example.app")},
		{"base_url", optional, "instead of https://api.push.apple.com; apps in development need https://api.sandbox.push.apple.com", providerURL(&a.BaseURL)},
	}
}

func (c *Channel) checkAPNs(p place) {
	p.oneOfTwo("key", "key_file")
	if c.APNs.BaseURL != "" && !strings.HasPrefix(c.APNs.BaseURL, "https:") {
		p.child("base_url").fault("must begin with https://: APNs speaks HTTP/2 over TLS only")
	}
}
