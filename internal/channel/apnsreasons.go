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
	_ = json.Unmarshal(a.Body, &said) // without a reason, the status line counts
	return a.Header.Get("Apns-Id"), said.Reason
}

// apnsReasons returns the reasons of APNs, after
// https://developer.apple.com/documentation/usernotifications/handling-notification-responses-from-apns, which also
// lists those that must not be retried. BadDeviceToken does not count as unregistered, because good tokens get it too
// in the wrong one of Apple's two environments.
func apnsReasons() map[string]meaning {
	return map[string]meaning{
		"BadDeviceToken":         {"not a device token, or one of the other environment", permanent},
		"DeviceTokenNotForTopic": {"the device token belongs to another app", permanent},
		"ExpiredToken":           {"the device token has expired", unregistered},
		"Forbidden":              {"this is not allowed", permanent},
		"PayloadEmpty":           {"the message is empty", permanent},
		"PayloadTooLarge":        {"the message is too large", permanent},
		"Unregistered":           {"the app was removed from the device", unregistered},

		"BadCertificate":              {"the certificate is not valid", temporary},
		"BadCertificateEnvironment":   {"the certificate is for the other environment", temporary},
		"BadEnvironmentKeyIdInToken":  {"the key is for the other environment", temporary},
		"BadTopic":                    {"the topic is not valid", temporary},
		"ExpiredProviderToken":        {"the provider token is too old; is the clock right?", temporary},
		"InvalidProviderToken":        {"the key, key_id or team_id is not valid", temporary},
		"MissingProviderToken":        {"the provider token is missing", temporary},
		"TopicDisallowed":             {"the topic is not allowed", temporary},
		"TooManyProviderTokenUpdates": {"the provider token changes too often", temporary},
		"TooManyRequests":             {"too many messages for this device", busyAddress},
	}
}
