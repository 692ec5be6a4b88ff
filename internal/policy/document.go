package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Document is a policy in the form that a tenant writes.
type Document struct {
	Rules       []Rule              `json:"rules,omitempty"`
	Categories  map[string]Category `json:"categories,omitempty"`
	QuietHours  []QuietHours        `json:"quiet_hours,omitempty"`
	DefaultZone string              `json:"default_zone,omitempty"` // absent: UTC
}

// ChannelNames returns all channels that the document names, and at least one.
func (d Document) ChannelNames() []string {
	names := []string{""}
	for _, r := range d.Rules {
		names = append(names, r.Channels...)
	}
	for _, q := range d.QuietHours {
		names = append(names, q.Channels...)
	}
	return names
}

// CategoryNames returns all categories that the document names; some may be there twice.
func (d Document) CategoryNames() []string {
	names := slices.Collect(maps.Keys(d.Categories))
	for _, r := range d.Rules {
		names = append(names, r.Categories...)
	}
	for _, q := range d.QuietHours {
		names = append(names, q.Categories...)
	}
	return names
}

// Equal reports whether two documents are equivalent.
func (d Document) Equal(other Document) bool {
	one, err := json.Marshal(d)
	two, otherErr := json.Marshal(other)
	return err == nil && otherErr == nil && bytes.Equal(one, two)
}

// Rule allows at most Limit sends in any window, or in each bucket of a calendar.
type Rule struct {
	Name   string `json:"name"`
	Limit  *int   `json:"limit"`            // required, because a limit of 0 blocks, and must not be an accident
	Window string `json:"window,omitempty"` // of a rolling rule, such as 1m
	Shadow bool   `json:"shadow,omitempty"` // count and report, without refusing

	Per       string `json:"per,omitempty"`        // of a calendar rule: hour, day, week or month
	WeekStart string `json:"week_start,omitempty"` // absent: monday
	Zone      string `json:"zone,omitempty"`       // an IANA name, or recipient; absent: the default zone

	Channels   []string `json:"channels,omitempty"`   // absent: all
	Categories []string `json:"categories,omitempty"` // absent: all
}

// Category is the special treatment of a category's pushes.
type Category struct {
	Bypass  bool           `json:"bypass,omitempty"`  // no rule and no quiet hours refuse them
	Counts  *bool          `json:"counts,omitempty"`  // false: they take no place from others
	Level   string         `json:"level,omitempty"`   // urgent, normal or bulk; absent: normal
	Reserve map[string]int `json:"reserve,omitempty"` // places of a rule, by its name, that only they may use
}

// QuietHours are hours of some days without sends. If From is later than Until, they span midnight.
type QuietHours struct {
	Name       string   `json:"name"`
	From       string   `json:"from"`               // such as 22:00, inclusive
	Until      string   `json:"until"`              // up to 24:00, exclusive
	Days       []string `json:"days,omitempty"`     // on which they begin: mon, tue …; absent: every day
	Zone       string   `json:"zone,omitempty"`     // as in a rule
	Channels   []string `json:"channels,omitempty"` // absent: all
	Categories []string `json:"categories,omitempty"`
	Action     string   `json:"action,omitempty"` // reject or defer; absent: reject
}

// OfRecipient is the zone of rules and quiet hours that use each recipient's own zone.
const OfRecipient = "recipient"
