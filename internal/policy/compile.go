package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// The maximum sizes of a document.
const (
	MaxRules  = 50
	MaxQuiet  = 20
	MaxScope  = 64 // names in a scope
	MaxLimit  = 100_000
	MinWindow = time.Millisecond
	MaxWindow = 8760 * time.Hour
)

// Compile returns the terms of a document. channels are the existing channels. The error is [invalid.FieldErrors] with
// all errors; its fields are paths in the document, such as rules[1].limit.
func (d Document) Compile(channels []string) (*Terms, error) {
	c := compiler{channels: channels, names: map[string]string{}, terms: &Terms{categories: d.Categories}}
	c.terms.zone = c.zone("default_zone", d.DefaultZone, time.UTC)
	c.atMost("rules", len(d.Rules), MaxRules)
	c.atMost("quiet_hours", len(d.QuietHours), MaxQuiet)
	for i, r := range d.Rules[:min(len(d.Rules), MaxRules)] {
		c.rule(fmt.Sprintf("rules[%d]", i), r)
	}
	c.categories(d)
	for i, q := range d.QuietHours[:min(len(d.QuietHours), MaxQuiet)] {
		c.quietHours(fmt.Sprintf("quiet_hours[%d]", i), q)
	}
	c.terms.settle()
	c.leavesTime()
	if err := c.bad.Err(); err != nil {
		return nil, err
	}
	return c.terms, nil
}

// compiler collects the terms of a document and its errors.
type compiler struct {
	channels []string
	names    map[string]string // of rules and quiet hours: where each is used
	terms    *Terms
	bad      invalid.FieldErrors
}

func (c *compiler) atMost(field string, n, most int) {
	if n > most {
		c.bad.Add(field, nil, "must have at most %d members, has %d", most, n)
	}
}

func (c *compiler) rule(at string, r Rule) {
	of := rule{shadow: r.Shadow, applies: c.scope(at, r.Channels, r.Categories)}
	of.Name = c.name(at, r.Name)
	switch {
	case r.Limit == nil:
		c.bad.Add(at+".limit", nil, "is required; 0 blocks all")
	case *r.Limit < 0 || *r.Limit > MaxLimit:
		c.bad.Add(at+".limit", *r.Limit, "must be a whole number from 0 to %d", MaxLimit)
	default:
		of.Limit = *r.Limit
	}
	switch {
	case r.Window != "" && r.Per != "":
		c.bad.Add(at+".per", r.Per, "must not be given together with window: a rule is rolling or of a calendar")
	case r.Per != "":
		c.calendar(at, r, &of)
	default:
		of.Window = c.window(at, r)
	}
	c.terms.rules = append(c.terms.rules, of)
}

// window reads the members of a rolling rule.
func (c *compiler) window(at string, r Rule) time.Duration {
	if r.Zone != "" {
		c.bad.Add(at+".zone", r.Zone, "is only for rules with per: a window is as long in every zone")
	}
	if r.WeekStart != "" {
		c.bad.Add(at+".week_start", r.WeekStart, "is only for rules with per: week")
	}
	if r.Window == "" {
		c.bad.Add(at+".window", nil, "is required, like 1h; or per, for a rule of a calendar")
		return 0
	}
	window, err := duration.Parse(r.Window)
	if err != nil || window < MinWindow || window > MaxWindow {
		c.bad.Add(at+".window", r.Window, "must be a duration from %s to %s, like 90s, 15m, 24h or 7d", duration.Words(MinWindow), duration.Words(MaxWindow))
	}
	return window
}

// calendar reads the members of a calendar rule.
func (c *compiler) calendar(at string, r Rule, of *rule) {
	unit, ok := zone.ParseUnit(r.Per)
	if !ok {
		c.bad.Add(at+".per", r.Per, "%s", invalid.Suggested("must be hour, day, week or month", r.Per, units))
	}
	start := time.Monday
	if r.WeekStart != "" {
		if start, ok = weekday(r.WeekStart); !ok {
			c.bad.Add(at+".week_start", r.WeekStart, "%s", invalid.Suggested("must be a day of the week, like monday", r.WeekStart, weekdays))
		}
		if r.Per != "week" {
			c.bad.Add(at+".week_start", r.WeekStart, "is only for rules with per: week")
		}
	}
	calendar := zone.Calendar{Unit: unit, WeekStart: start, Zone: c.zone(at+".zone", r.Zone, c.terms.zone)}
	of.Periods = calendar
	if r.Zone == OfRecipient {
		of.calendar = &calendar
	}
}

// weekday reads the name of a day, in full or its first three letters.
func weekday(name string) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if whole := strings.ToLower(day.String()); name == whole || name == whole[:3] {
			return day, true
		}
	}
	return time.Sunday, false
}

// nameShape is the shape of the names of rules, quiet hours and channels.
var nameShape = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// name reads the name of a rule or of quiet hours. Names are unique, because refusals identify rules by them.
func (c *compiler) name(at, name string) string {
	field := at + ".name"
	first, taken := c.names[name]
	switch {
	case name == "":
		c.bad.Add(field, nil, "is required")
	case !nameShape.MatchString(name):
		c.bad.Add(field, name, "must be 1 to 64 of a-z, 0-9, - and _")
	case taken:
		c.bad.Add(field, name, "must be unique; %s has it already", first)
	default:
		c.names[name] = at
	}
	return name
}

// scope reads the scope of a rule or quiet hours.
func (c *compiler) scope(at string, channels, categories []string) *quota.Scope {
	for _, list := range []struct {
		field string
		names []string
	}{{at + ".channels", channels}, {at + ".categories", categories}} {
		if list.names != nil && len(list.names) == 0 {
			c.bad.Add(list.field, nil, "must not be empty; leave it out for all")
		}
		c.atMost(list.field, len(list.names), MaxScope)
		if i := slices.Index(list.names, ""); i >= 0 {
			c.bad.Add(fmt.Sprintf("%s[%d]", list.field, i), nil, "must not be empty")
		}
	}
	for i, name := range channels {
		if name != "" && !slices.Contains(c.channels, name) {
			c.bad.Add(fmt.Sprintf("%s.channels[%d]", at, i), name, "there is no such channel; there are: %s", strings.Join(c.channels, ", "))
		}
	}
	if channels == nil && categories == nil {
		return nil
	}
	return &quota.Scope{Channels: channels, Categories: categories}
}

// zone reads the name of a zone. For recipient it returns the default zone, until the recipient is known.
func (c *compiler) zone(field, name string, absent *time.Location) *time.Location {
	if name == "" || name == OfRecipient && field != "default_zone" {
		return absent
	}
	loaded, err := zone.Load(name)
	if err != nil {
		c.bad.Add(field, name, "%s", err)
		return absent
	}
	return loaded
}

// The words that members of a policy may be; levels are the service levels of categories.
var (
	levels   = []string{"urgent", "normal", "bulk"}
	units    = []string{"hour", "day", "week", "month"}
	weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
	actions  = []string{"reject", "defer"}
)

func (c *compiler) level(field, name string) {
	if name != "" && !slices.Contains(levels, name) {
		c.bad.Add(field, name, "%s", invalid.Suggested("must be urgent, normal or bulk", name, levels))
	}
}

// categories checks the levels of categories, and the places that they reserve.
func (c *compiler) categories(d Document) {
	together := map[string]int{}
	for _, category := range slices.Sorted(maps.Keys(d.Categories)) {
		at := "categories." + category
		if category == "" {
			c.bad.Add("categories", nil, "must have names")
		}
		if name := quota.Name(category); name != category {
			c.bad.Add(at, nil, "must be given once: it is the same as %s", name)
		}
		c.level(at+".level", d.Categories[category].Level)
		kept := d.Categories[category].Reserve
		for _, name := range slices.Sorted(maps.Keys(kept)) {
			field, places := at+".reserve."+name, kept[name]
			i := slices.IndexFunc(d.Rules, func(r Rule) bool { return r.Name == name })
			if i < 0 {
				c.bad.Add(field, places, "there is no rule of this name")
				continue
			}
			r := d.Rules[i]
			together[name] += max(0, places)
			switch {
			case places < 0:
				c.bad.Add(field, places, "must not be negative")
			case r.Limit != nil && together[name] > *r.Limit:
				c.bad.Add(field, places, "keeps, together with the categories before it, %d places of the rule's %d", together[name], *r.Limit)
			}
		}
	}
}
