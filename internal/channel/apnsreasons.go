package channel

import (
	"encoding/json"

	"github.com/sendquota/sendquota/internal/outbound"
)

// apnsAnswer reads the id of a message, and the reason of a refusal.
func apnsAnswer(a outbound.Answer) (id, reason string) {
	var said struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(a.Body, &said) // without a reason the status line stands alone
	return a.Header.Get("Apns-Id"), said.Reason
}

// apnsReasons returns the reasons of APNs, after
// https://developer.apple.com/documentation/usernotifications/handling-notification-responses-from-apns,
// which also says which of them not to try again. A BadDeviceToken is not taken
// for unregistered: it is also what all good tokens are in the wrong one of
// Apple's two environments.
func apnsReasons() map[string]meaning {
	return map[string]meaning{
		"BadDeviceToken":         {"not a device token, or one of the other environment", true, false},
		"DeviceTokenNotForTopic": {"the device token belongs to another app", true, false},
		"ExpiredToken":           {"the device token has expired", true, true},
		"Forbidden":              {"this is not allowed", true, false},
		"PayloadEmpty":           {"the message is empty", true, false},
		"PayloadTooLarge":        {"the message is too large", true, false},
		"Unregistered":           {"the app was removed from the device", true, true},

		"BadCertificate":              {"the certificate is not valid", false, false},
		"BadCertificateEnvironment":   {"the certificate is for the other environment", false, false},
		"BadEnvironmentKeyIdInToken":  {"the key is for the other environment", false, false},
		"BadTopic":                    {"the topic is not valid", false, false},
		"ExpiredProviderToken":        {"the provider token is too old; is the clock right?", false, false},
		"InvalidProviderToken":        {"the key, key_id or team_id is not valid", false, false},
		"MissingProviderToken":        {"the provider token is missing", false, false},
		"TopicDisallowed":             {"the topic is not allowed", false, false},
		"TooManyProviderTokenUpdates": {"the provider token changes too often", false, false},
		"TooManyRequests":             {"too many messages for this device", false, false},
	}
}
