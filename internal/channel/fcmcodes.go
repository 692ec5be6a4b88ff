package channel

import (
	"encoding/json"

	"github.com/sendquota/sendquota/internal/outbound"
)

// fcmCodes returns the errors of FCM, after
// https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode, and those of
// Google's APIs in general that go before them.
func fcmCodes() map[string]meaning {
	return map[string]meaning{
		"UNREGISTERED":       {"the app was removed, or its token has expired", true, true},
		invalidToken:         {"not a registration token of FCM", true, true},
		"INVALID_ARGUMENT":   {"the message or its token is not valid", true, false},
		"SENDER_ID_MISMATCH": {"the token belongs to an app of another project", true, false},

		"QUOTA_EXCEEDED":         {"too many messages", false, false},
		"THIRD_PARTY_AUTH_ERROR": {"the project's certificate for APNs or key for web push is not valid", false, false},
		"UNAVAILABLE":            {"overloaded", false, false},
		"UNAUTHENTICATED":        {"the access token is not valid", false, false},
		"PERMISSION_DENIED":      {"the service account may not send messages", false, false},
		"NOT_FOUND":              {"there is no such project", false, false},
		"RESOURCE_EXHAUSTED":     {"too many messages", false, false},
	}
}

// invalidToken is an INVALID_ARGUMENT that is about the token, for which FCM has no code of its own.
const invalidToken = "INVALID_ARGUMENT for the token"

// fcmAnswer reads the name of a message, and the code of an error. The code of FCM itself, in the details, says more
// than the status, which is that of Google's APIs in general.
func fcmAnswer(a outbound.Answer) (name, code string) {
	var answer struct {
		Name  string `json:"name"`
		Error struct {
			Status  string `json:"status"`
			Message string `json:"message"`
			Details []struct {
				ErrorCode  string `json:"errorCode"`
				Violations []struct {
					Field string `json:"field"`
				} `json:"fieldViolations"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &answer) // without a code the status line stands alone
	code = answer.Error.Status
	aboutToken := answer.Error.Message == "The registration token is not a valid FCM registration token"
	for _, d := range answer.Error.Details {
		if d.ErrorCode != "" {
			code = d.ErrorCode
		}
		for _, v := range d.Violations {
			aboutToken = aboutToken || v.Field == "message.token"
		}
	}
	if code == "INVALID_ARGUMENT" && aboutToken {
		code = invalidToken
	}
	return answer.Name, code
}
