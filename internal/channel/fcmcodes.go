package channel

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/sendquota/sendquota/internal/outbound"
)

// fcmCodes returns the errors of FCM, after https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode, and the
// general errors of Google's APIs.
func fcmCodes() map[string]meaning {
	return map[string]meaning{
		"UNREGISTERED":       {"the app was removed, or its token has expired", unregistered},
		invalidToken:         {"not a registration token of FCM", unregistered},
		"INVALID_ARGUMENT":   {"the message or its token is not valid", permanent},
		"SENDER_ID_MISMATCH": {"the token belongs to an app of another project", permanent},

		"QUOTA_EXCEEDED":         {"too many messages for this device", busyAddress},
		projectQuota:             {"too many messages", temporary},
		"THIRD_PARTY_AUTH_ERROR": {"the project's certificate for APNs or key for web push is not valid", temporary},
		"UNAVAILABLE":            {"overloaded", temporary},
		"UNAUTHENTICATED":        {"the access token is not valid", temporary},
		"PERMISSION_DENIED":      {"the service account may not send messages", temporary},
		"NOT_FOUND":              {"there is no such project", temporary},
		"RESOURCE_EXHAUSTED":     {"too many messages", temporary},
	}
}

// invalidToken is an INVALID_ARGUMENT about the token. FCM has no code of its own for it.
const invalidToken = "INVALID_ARGUMENT for the token"

// projectQuota is a QUOTA_EXCEEDED about the project. FCM has no code of its own for it. Any other is about the
// message's device or topic.
const projectQuota = "QUOTA_EXCEEDED for the project"

// perProject matches the name of a project's quota, such as RequestsPerSecondPerProject or "per minute per project".
var perProject = regexp.MustCompile(`(?i)per[ _-]?project`)

// fcmAnswer reads the name of a message, and the code of an error. FCM's own code, in the details, is more specific
// than the status, which all of Google's APIs share.
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
				Quotas []struct {
					Subject     string `json:"subject"`
					Description string `json:"description"`
					ID          string `json:"quotaId"`
				} `json:"violations"`
				Metadata struct {
					Limit string `json:"quota_limit"`
				} `json:"metadata"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &answer) // without a code, the status line counts
	code = answer.Error.Status
	aboutProject := false
	aboutToken := answer.Error.Message == "The registration token is not a valid FCM registration token"
	for _, d := range answer.Error.Details {
		if d.ErrorCode != "" {
			code = d.ErrorCode
		}
		for _, v := range d.Violations {
			aboutToken = aboutToken || v.Field == "message.token"
		}
		aboutProject = aboutProject || perProject.MatchString(d.Metadata.Limit)
		for _, q := range d.Quotas {
			aboutProject = aboutProject || strings.HasPrefix(q.Subject, "project") || perProject.MatchString(q.Description+" "+q.ID)
		}
	}
	switch {
	case code == "INVALID_ARGUMENT" && aboutToken:
		code = invalidToken
	case code == "QUOTA_EXCEEDED" && aboutProject:
		code = projectQuota
	}
	return answer.Name, code
}
