package activity

import (
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestFailures_Meaning explains reasons without words of their own, too.
func TestFailures_Meaning(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]client.FailureGroup{
		"no longer knows":                 {Status: client.FailureGroupStatusFailed, Reason: "unregistered: gone"},
		"message expired while":           {Status: client.FailureGroupStatusExpired, Reason: "it expired before it could be sent"},
		"no longer exists":                {Status: client.FailureGroupStatusExpired, Reason: "it expired before it could be sent: its channel is not configured any more"},
		"may have arrived":                {Status: client.FailureGroupStatusFailed, Reason: "the connection broke", PossiblyDelivered: 1},
		"refused the message permanently": {Status: client.FailureGroupStatusFailed, Reason: "the provider answered 404"},
		"could not be reached":            {Status: client.FailureGroupStatusFailed, Reason: "gave up after 3 attempts: no connection: connection refused"},
		"in any attempt":                  {Status: client.FailureGroupStatusFailed, Reason: "gave up after 3 attempts: the provider answered 400"},
		"at this speed":                   {Status: client.FailureGroupStatusFailed, Reason: "gave up after 3 attempts: the provider answered 429 Too Many Requests"},
	} {
		if got := meaningOf(g); !strings.Contains(got.Means, want) || got.Do == "" {
			t.Errorf("%s: %+v", g.Reason, got)
		}
	}
}
