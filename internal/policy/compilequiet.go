package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

func (c *compiler) quietHours(at string, q QuietHours) {
	of := quiet{applies: c.scope(at, q.Channels, q.Categories)}
	of.Name, of.Quiet = c.name(at, q.Name), true
	switch q.Action {
	case "", "reject":
	case "defer":
		of.Defers = true
	default:
		c.bad.Add(at+".action", q.Action, "%s", invalid.Suggested("must be reject or defer", q.Action, actions))
	}
	hours := zone.Hours{Zone: c.zone(at+".zone", q.Zone, c.terms.zone), Days: c.days(at, q.Days)}
	hours.From = c.clock(at+".from", q.From, false)
	hours.Until = c.clock(at+".until", q.Until, true)
	of.Periods = hours
	if q.Zone == OfRecipient {
		of.hours = &hours
	}
	c.terms.quiet = append(c.terms.quiet, of)
}

// clock reads a time of day; as an end, 24:00 is allowed too.
func (c *compiler) clock(field, text string, end bool) time.Duration {
	if end && text == "24:00" {
		return 24 * time.Hour
	}
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		if end {
			c.bad.Add(field, text, "must be a time of day, from 00:00 to 24:00")
		} else {
			c.bad.Add(field, text, "must be a time of day, from 00:00 to 23:59")
		}
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

func (c *compiler) days(at string, names []string) zone.Days {
	if names == nil {
		return zone.EveryDay
	}
	if len(names) == 0 {
		c.bad.Add(at+".days", nil, "must not be empty; leave it out for every day")
	}
	var days zone.Days
	for i, name := range names {
		day, ok := weekday(name)
		if !ok {
			c.bad.Add(fmt.Sprintf("%s.days[%d]", at, i), name, "must be mon, tue, wed, thu, fri, sat or sun")
		}
		days = days.Add(day)
	}
	return days
}

// leavesTime checks that quiet hours leave a minute of each week to every kind of push, in winter and in summer. Quiet
// hours in recipients' zones are checked in the default zone.
func (c *compiler) leavesTime() {
	if slices.ContainsFunc(c.bad, func(e invalid.FieldError) bool {
		return strings.HasPrefix(e.Field, "quiet_hours") || e.Field == "default_zone"
	}) {
		return // quiet hours with an error are not checked
	}
	for _, k := range c.quietKinds() {
		var night quota.Policy
		for _, r := range c.terms.For(Person{}, k) {
			if r.Quiet {
				night = append(night, r)
			}
		}
		for _, monday := range []time.Time{time.Date(2026, 1, 12, 0, 0, 0, 0, time.UTC), time.Date(2026, 7, 13, 0, 0, 0, 0, time.UTC)} {
			if free, ok := night.Next(quota.Timeline{}, monday, 0); !ok || !free.Before(monday.AddDate(0, 0, 7)) {
				c.bad.Add("quiet_hours", nil, "leave no minute of a week free%s", describe(k))
				return
			}
		}
	}
}

// quietKinds returns the kinds of pushes that quiet hours distinguish.
func (c *compiler) quietKinds() []quota.Kind {
	channels, categories := []string{""}, []string{""}
	for i := range c.terms.quiet {
		if s := c.terms.quiet[i].applies; s != nil {
			channels, categories = append(channels, s.Channels...), append(categories, s.Categories...)
		}
	}
	slices.Sort(channels)
	slices.Sort(categories)
	var kinds []quota.Kind
	for _, channel := range slices.Compact(channels) {
		for _, category := range slices.Compact(categories) {
			kinds = append(kinds, quota.Kind{Channel: channel, Category: category})
		}
	}
	return kinds
}

func describe(k quota.Kind) string {
	text := ""
	if k.Channel != "" {
		text += " on the channel " + k.Channel
	}
	if k.Category != "" {
		text += " in the category " + k.Category
	}
	if text != "" {
		text = ", for pushes" + text
	}
	return text
}
