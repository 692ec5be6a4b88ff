package httpapi

import (
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/policy"
)

// policyFields is the body of a change of the policy. What one member alone cannot tell is for [policy.Document.Compile].
var policyFields = table[policy.Document]{schemaName: "NewPolicy", fields: []field[policy.Document]{
	row("rules", optional, array(0, policy.MaxRules, ruleFields.schema, func(d *policy.Document, r *reader, i int, name string, errs *fieldErrors) {
		d.Rules = append(d.Rules[:i], member(&ruleFields, r, item(name, i), errs))
	}), "Each rule must allow a send. None: there are no limits.", nil),
	row("categories", optional, mapped(categoryFields.schema, func(d *policy.Document, category string, r *reader, at string, errs *fieldErrors) {
		if d.Categories == nil {
			d.Categories = map[string]policy.Category{}
		}
		d.Categories[category] = member(&categoryFields, r, at, errs)
	}), "The exceptions for categories, by name.", nil),
	row("quiet_hours", optional, array(0, policy.MaxQuiet, quietFields.schema, func(d *policy.Document, r *reader, i int, name string, errs *fieldErrors) {
		d.QuietHours = append(d.QuietHours[:i], member(&quietFields, r, item(name, i), errs))
	}), "Hours without sends.", nil),
	row("default_zone", optional, token(func(d *policy.Document, s string) { d.DefaultZone = s }), "The IANA zone for rules, quiet hours and recipients without a zone. Default: UTC.", "Europe/Berlin"),
	row("version", optional, ignored[policy.Document](), "Ignored, so that the answer of GET can be sent back.", nil),
	row("source", optional, ignored[policy.Document](), "Ignored, too.", nil),
}}

var ruleFields = table[policy.Rule]{schemaName: "NewRule", fields: []field[policy.Rule]{
	row("name", required, token(func(r *policy.Rule, s string) { r.Name = s }), "Appears in refusals; unique, 1 to 64 of a-z, 0-9, - and _.", "per-day"),
	row("limit", required, integer(func(r *policy.Rule, n int) { r.Limit = &n }, 0, policy.MaxLimit), "The number of allowed sends; 0 blocks all.", 10),
	row("window", optional, token(func(r *policy.Rule, s string) { r.Window = s }), "The length of a rolling rule's window, from 1 millisecond to 1 year. A rule has either window or per.", "24h"),
	row("per", optional, oneOf(func(r *policy.Rule, s string) { r.Per = s }, "hour", "day", "week", "month"), "The bucket of a calendar rule.", nil),
	row("week_start", optional, token(func(r *policy.Rule, s string) { r.WeekStart = s }), "For per: week, the first day of a week. Default: monday.", "monday"),
	row("zone", optional, token(func(r *policy.Rule, s string) { r.Zone = s }), "For a calendar rule: an IANA name, or recipient for each recipient's own zone. Default: default_zone.", "recipient"),
	row("channels", optional, names(func(r *policy.Rule) *[]string { return &r.Channels }), "The rule applies to and counts only pushes on these channels. Default: all.", nil),
	row("categories", optional, names(func(r *policy.Rule) *[]string { return &r.Categories }), "The rule applies to and counts only pushes of these categories. Default: all.", nil),
	row("shadow", optional, boolean(func(r *policy.Rule, v bool) { r.Shadow = v }).or("false"), "Count and report the pushes that the rule would refuse, but refuse none.", nil),
}}

var categoryFields = table[policy.Category]{schemaName: "NewCategory", fields: []field[policy.Category]{
	row("bypass", optional, boolean(func(c *policy.Category, v bool) { c.Bypass = v }).or("false"), "No rule and no quiet hours refuse pushes of the category.", nil),
	row("counts", optional, boolean(func(c *policy.Category, v bool) { c.Counts = &v }), "false: pushes of the category take no place from others. Default: true.", nil),
	row("reserve", optional, mapped(described(huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)}), func(c *policy.Category, rule string, r *reader, at string, errs *fieldErrors) {
		if c.Reserve == nil {
			c.Reserve = map[string]int{}
		}
		n, raw := 0, r.value()
		if wrong := placesOfRule.readJSON(raw, &n, "", nil); r.err == nil && wrong != "" {
			errs.addJSON(at, wrong, raw)
			return
		}
		c.Reserve[rule] = n
	}), "The number of a rule's places that only this category can use, by the name of the rule.", map[string]any{"per-day": 2}),
}}

// placesOfRule is a number of places of a rule.
var placesOfRule = integer(func(to *int, n int) { *to = n }, 0, policy.MaxLimit)

var quietFields = table[policy.QuietHours]{schemaName: "NewQuietHours", fields: []field[policy.QuietHours]{
	row("name", required, token(func(q *policy.QuietHours, s string) { q.Name = s }), "Appears in refusals. Must differ from the names of rules.", "night"),
	row("from", required, token(func(q *policy.QuietHours, s string) { q.From = s }), "The time of day of the beginning, inclusive. If it is later than until, the hours span midnight.", "22:00"),
	row("until", required, token(func(q *policy.QuietHours, s string) { q.Until = s }), "The time of day of the end, exclusive; at most 24:00.", "08:00"),
	row("days", optional, names(func(q *policy.QuietHours) *[]string { return &q.Days }), "The days of the beginning: mon, tue, wed, thu, fri, sat, sun. Default: every day.", nil),
	row("zone", optional, token(func(q *policy.QuietHours, s string) { q.Zone = s }), "As for a rule.", "recipient"),
	row("channels", optional, names(func(q *policy.QuietHours) *[]string { return &q.Channels }), "Only pushes on these channels. Default: all.", nil),
	row("categories", optional, names(func(q *policy.QuietHours) *[]string { return &q.Categories }), "Only pushes of these categories. Default: all.", nil),
	row("action", optional, oneOf(func(q *policy.QuietHours, s string) { q.Action = s }, "reject", "defer"), "The action for a push in quiet hours: reject refuses it, defer moves it to the first free time. Default: reject.", nil),
}}

// member reads an object by its table, and puts its place before its errors.
func member[V any](of *table[V], r *reader, at string, errs *fieldErrors) (v V) {
	var found fieldErrors
	of.read(r, &v, &found)
	errs.addAll(at, found)
	return v
}

// mapped is an object whose members have names of the caller's choice. Each is read by element.
func mapped[T any](items func(*spec) *huma.Schema, element func(to *T, key string, r *reader, at string, errs *fieldErrors)) value[T] {
	return value[T]{
		describe: func(s *spec) *huma.Schema {
			return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: items(s)}
		},
		json: func(to *T, raw []byte, name string, errs *fieldErrors) string {
			if raw[0] != '{' {
				return "must be an object"
			}
			readAgain(raw, func(r *reader) {
				for key := range r.members {
					element(to, string(key), r, under(name, string(key)), errs)
				}
			})
			return ""
		},
	}
}

// names is a list of names, which must not be empty.
func names[T any](list func(*T) *[]string) value[T] {
	return array(1, 0, described(textSchema(1, maxCategory)), func(to *T, r *reader, i int, name string, errs *fieldErrors) {
		var (
			s   string
			one = named(func(to *string, s string) { *to = s }, 1, maxCategory)
			raw = r.value()
		)
		if r.err != nil {
			return
		}
		if wrong := one.readJSON(raw, &s, "", nil); wrong != "" {
			errs.addJSON(item(name, i), wrong, raw)
		}
		*list(to) = append((*list(to))[:min(i, len(*list(to)))], s)
	})
}

// readPolicy reads a policy, and returns all that is wrong with the request.
func (h *policies) readPolicy(c *call, bad *fieldErrors) (d policy.Document, err error) {
	var found fieldErrors
	if _, err = c.object(maxBody, bad, func(r *reader) { policyFields.read(r, &d, &found) }); err != nil {
		return d, err
	}
	unread := found
	d = d.Folded()
	for _, one := range h.svc.Check(d) {
		if unread.has(one.Field) {
			continue
		}
		if s, ok := one.Value.(string); ok {
			one.Value = shown(validUTF8(s))
		}
		found.keep(one)
	}
	for i := range found.list {
		if f := &found.list[i].Field; len(*f) > 2*maxShown {
			*f = fmt.Sprint(shown(*f))
		}
	}
	bad.addAll("body", found)
	return d, bad.err()
}
