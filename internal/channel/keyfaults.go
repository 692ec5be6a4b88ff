package channel

import (
	"time"

	"github.com/sendquota/sendquota/internal/outbound"
)

// AppleKeyFault returns why a text is not the key of an [APNs], or "". It quotes nothing of the text.
func AppleKeyFault(text string) string {
	if _, err := newAppleTokens(text, "", "", time.Now); err != nil {
		return err.Error()
	}
	return ""
}

// GoogleCredentialsFault returns why a text is not the credentials of an [FCM], or "". It quotes nothing of the text.
func GoogleCredentialsFault(text string) string {
	if _, err := newGoogleTokens(text, "", outbound.New(outbound.Config{Timeout: defaultTimeout}), time.Now); err != nil {
		return err.Error()
	}
	return ""
}
