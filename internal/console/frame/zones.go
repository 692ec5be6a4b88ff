package frame

import (
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/zone"
)

const (
	zoneParam  = "tz"           // parameter of the URL: mine, recipient or utc
	zoneCookie = "sendquota_tz" // a script writes the zone of the browser into it
	ZoneField  = "zone"         // field of a form: the zone of its typed times
)

// Zones are the time zones that a page can show.
type Zones struct {
	Chosen    string // mine, recipient or utc; empty: mine
	Mine      *time.Location
	Recipient *time.Location // nil: the page has no recipient, or the zone is unknown
}

// readZones reads the choice from the URL and the browser's zone from the cookie that a script sets. Without a cookie, it is UTC.
func readZones(r *http.Request) Zones {
	z := Zones{Chosen: r.URL.Query().Get(zoneParam), Mine: time.UTC}
	if z.Chosen != "recipient" && z.Chosen != "utc" && z.Chosen != "mine" {
		z.Chosen = ""
	}
	if cookie, err := r.Cookie(zoneCookie); err == nil {
		if mine, err := zone.Load(cookie.Value); err == nil {
			z.Mine = mine
		}
	}
	return z
}

// Shown returns the chosen zone.
func (z Zones) Shown() *time.Location {
	switch {
	case z.Chosen == "utc":
		return time.UTC
	case z.Chosen == "recipient" && z.Recipient != nil:
		return z.Recipient
	}
	return z.Mine
}

// choice is one way to show times.
type choice struct {
	Value, Name string
	Current     bool
}

// Choices returns the zones that this page offers.
func (z Zones) Choices() []choice {
	all := []choice{{"mine", "Mine: " + z.Mine.String(), z.Shown() == z.Mine && z.Chosen != "utc" && (z.Chosen != "recipient" || z.Recipient == nil)}}
	if z.Recipient != nil {
		all = append(all, choice{"recipient", "Recipient’s: " + z.Recipient.String(), z.Chosen == "recipient"})
	}
	return append(all, choice{"utc", "UTC", z.Chosen == "utc"})
}

// LoadZone returns a zone by its name; nil if it is unknown.
func LoadZone(name string) *time.Location {
	if name == "" {
		return nil
	}
	at, err := zone.Load(name)
	if err != nil {
		return nil
	}
	return at
}

// zoneName returns the name of a time's zone, with its offset unless it is UTC.
func zoneName(t time.Time) string {
	if t.Location() == time.UTC {
		return "UTC"
	}
	return t.Location().String() + " (" + t.Format("-07:00") + ")"
}
