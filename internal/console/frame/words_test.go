package frame

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// TestWords_Words: the times and time spans that a fault of the API names, and the names of fields, are written as people read them, and ids stay as they are.
func TestWords_Words(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 5, 0, 0, 0, time.UTC)
	p := &Page{Form: Form{Times: Times{Zones: Zones{Mine: LoadZone("Europe/Berlin")}, Clock: func() time.Time { return now }}}}
	said := func(f client.Fault, want string) {
		t.Helper()
		if got := FaultWords(p, f); got != want {
			t.Errorf("%q is said as\n%q, want\n%q", f.Message, got, want)
		}
	}
	said(client.Fault{Message: "must not be before send_at, 2026-11-24T05:30:00Z", Limit: "2026-11-24T05:30:00Z"}, "must not be before the send time, 2026-11-24 06:30:00 Europe/Berlin (+01:00), in 30 min")
	said(client.Fault{Message: "must not be more than a minute in the past; it is now 2026-11-24T05:00:01Z", Now: now.Add(time.Second)},
		"must not be more than a minute in the past; it is now 2026-11-24 06:00:01 Europe/Berlin (+01:00)")
	said(client.Fault{Message: "must not be more than 2 days, 1 hour and 30 minutes ahead; it is now 2026-11-24T05:00:01Z", Limit: "49h30m0s", Now: now.Add(time.Second)},
		"must not be more than 2 days, 1 hour and 30 minutes ahead; it is now 2026-11-24 06:00:01 Europe/Berlin (+01:00)")
	said(client.Fault{Message: "the push's expires_at, 2026-11-24T06:00:00Z, must be after send_at, 2026-11-24T07:00:00Z", Limit: "2026-11-24T06:00:00Z", Value: "2026-11-24T07:00:00Z"},
		"the push's the time it expires, 2026-11-24 07:00:00 Europe/Berlin (+01:00), in 1 h, must be after the send time, 2026-11-24 08:00:00 Europe/Berlin (+01:00), in 2 h")
	said(client.Fault{Message: "must be a time span of whole seconds from 0 seconds to 1 day, written like 500ms, 90s or 24h", Value: "24h"}, "must be a time span of whole seconds from 0 seconds to 1 day, written like 500ms, 90s or 24h")
	said(client.Fault{Message: "needs a time zone, like 2026-12-01T09:00:00Z", Value: "2026-12-01T09:00:00"}, "needs a time zone, like 2026-12-01T09:00:00Z")
	said(client.Fault{Message: "user-5s has no address"}, "user-5s has no address")
	if got := plainSentence("this is the tenant's last active admin"); got != "This is the team's last active admin" {
		t.Errorf("%q", got)
	}
	if got := plainSentence("only-one is unknown"); got != "only-one is unknown" {
		t.Errorf("an id is written with a capital: %q", got)
	}
}
