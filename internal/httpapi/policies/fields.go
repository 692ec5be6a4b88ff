package policies

import (
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/rest"
)

// policyFields is the body of a change of the policy. [policy.Document.Compile] finds errors that concern several members.
var policyFields = rest.Table[policy.Document]{SchemaName: "NewPolicy", Fields: []rest.Field[policy.Document]{
	rest.Row("rules", rest.Optional, rest.Array(0, policy.MaxRules, ruleFields.Schema, func(d *policy.Document, r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
		d.Rules = append(d.Rules[:i], member(&ruleFields, r, rest.Item(name, i), errs))
	}), "Each rule must allow a send. None: there are no limits.", nil),
	rest.Row("categories", rest.Optional, mapped(categoryFields.Schema, func(d *policy.Document, category string, r *rest.Reader, at string, errs *rest.FieldErrors) {
		if d.Categories == nil {
			d.Categories = map[string]policy.Category{}
		}
		d.Categories[category] = member(&categoryFields, r, at, errs)
	}), "The exceptions for categories, by name.", nil),
	rest.Row("quiet_hours", rest.Optional, rest.Array(0, policy.MaxQuiet, quietFields.Schema, func(d *policy.Document, r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
		d.QuietHours = append(d.QuietHours[:i], member(&quietFields, r, rest.Item(name, i), errs))
	}), "Hours without sends.", nil),
	rest.Row("default_zone", rest.Optional, rest.Token(func(d *policy.Document, s string) { d.DefaultZone = s }), "The IANA zone for rules, quiet hours and recipients without a zone. Default: UTC.", "Europe/Berlin"),
	rest.Row("version", rest.Optional, rest.Ignored[policy.Document](), "Ignored, so that the answer of GET can be sent back.", nil),
	rest.Row("source", rest.Optional, rest.Ignored[policy.Document](), "Ignored, too.", nil),
}}

var ruleFields = rest.Table[policy.Rule]{SchemaName: "NewRule", Fields: []rest.Field[policy.Rule]{
	rest.Row("name", rest.Required, rest.Token(func(r *policy.Rule, s string) { r.Name = s }), "Appears in refusals; unique, 1 to 64 of a-z, 0-9, - and _.", "per-day"),
	rest.Row("limit", rest.Required, rest.Integer(func(r *policy.Rule, n int) { r.Limit = &n }, 0, policy.MaxLimit), "The number of allowed sends; 0 blocks all.", 10),
	rest.Row("window", rest.Optional, rest.Token(func(r *policy.Rule, s string) { r.Window = s }), "The length of a rolling rule's window, from 1 millisecond to 1 year. A rule has either window or per.", "24h"),
	rest.Row("per", rest.Optional, rest.OneOf(func(r *policy.Rule, s string) { r.Per = s }, "hour", "day", "week", "month"), "The bucket of a calendar rule.", nil),
	rest.Row("week_start", rest.Optional, rest.Token(func(r *policy.Rule, s string) { r.WeekStart = s }), "For per: week, the first day of a week. Default: monday.", "monday"),
	rest.Row("zone", rest.Optional, rest.Token(func(r *policy.Rule, s string) { r.Zone = s }), "For a calendar rule: an IANA name, or recipient for each recipient's own zone. Default: default_zone.", "recipient"),
	rest.Row("channels", rest.Optional, names(func(r *policy.Rule) *[]string { return &r.Channels }), "The rule applies to and counts only pushes on these channels. Default: all.", nil),
	rest.Row("categories", rest.Optional, names(func(r *policy.Rule) *[]string { return &r.Categories }), "The rule applies to and counts only pushes of these categories. Default: all.", nil),
	rest.Row("shadow", rest.Optional, rest.Boolean(func(r *policy.Rule, v bool) { r.Shadow = v }).Or("false"), "Count and report the pushes that the rule would refuse, but refuse none.", nil),
}}

var categoryFields = rest.Table[policy.Category]{SchemaName: "NewCategory", Fields: []rest.Field[policy.Category]{
	rest.Row("bypass", rest.Optional, rest.Boolean(func(c *policy.Category, v bool) { c.Bypass = v }).Or("false"), "No rule and no quiet hours refuse pushes of the category.", nil),
	rest.Row("counts", rest.Optional, rest.Boolean(func(c *policy.Category, v bool) { c.Counts = &v }), "false: pushes of the category take no place from others. Default: true.", nil),
	rest.Row("level", rest.Optional, rest.OneOf(func(c *policy.Category, s string) { c.Level = s }, "urgent", "normal", "bulk"), "The service level of the category: which of the pushes that wait for a busy channel leave first. Default: normal.", nil),
	rest.Row("reserve", rest.Optional, mapped(rest.Described(huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)}), func(c *policy.Category, rule string, r *rest.Reader, at string, errs *rest.FieldErrors) {
		if c.Reserve == nil {
			c.Reserve = map[string]int{}
		}
		n, raw := 0, r.Value()
		if wrong := placesOfRule.ReadJSON(raw, &n, "", nil); r.Err == nil && wrong != "" {
			errs.AddJSON(at, wrong, raw)
			return
		}
		c.Reserve[rule] = n
	}), "The number of a rule's places that only this category can use, by the name of the rule.", map[string]any{"per-day": 2}),
}}

// placesOfRule reads a number of a rule's places.
var placesOfRule = rest.Integer(func(to *int, n int) { *to = n }, 0, policy.MaxLimit)

var quietFields = rest.Table[policy.QuietHours]{SchemaName: "NewQuietHours", Fields: []rest.Field[policy.QuietHours]{
	rest.Row("name", rest.Required, rest.Token(func(q *policy.QuietHours, s string) { q.Name = s }), "Appears in refusals. Must differ from the names of rules.", "night"),
	rest.Row("from", rest.Required, rest.Token(func(q *policy.QuietHours, s string) { q.From = s }), "The time of day of the beginning, inclusive. If it is later than until, the hours span midnight.", "22:00"),
	rest.Row("until", rest.Required, rest.Token(func(q *policy.QuietHours, s string) { q.Until = s }), "The time of day of the end, exclusive; at most 24:00.", "08:00"),
	rest.Row("days", rest.Optional, names(func(q *policy.QuietHours) *[]string { return &q.Days }), "The days of the beginning: mon, tue, wed, thu, fri, sat, sun. Default: every day.", nil),
	rest.Row("zone", rest.Optional, rest.Token(func(q *policy.QuietHours, s string) { q.Zone = s }), "As for a rule.", "recipient"),
	rest.Row("channels", rest.Optional, names(func(q *policy.QuietHours) *[]string { return &q.Channels }), "Only pushes on these channels. Default: all.", nil),
	rest.Row("categories", rest.Optional, names(func(q *policy.QuietHours) *[]string { return &q.Categories }), "Only pushes of these categories. Default: all.", nil),
	rest.Row("action", rest.Optional, rest.OneOf(func(q *policy.QuietHours, s string) { q.Action = s }, "reject", "defer"), "The action for a push in quiet hours: reject refuses it, defer moves it to the first free time. Default: reject.", nil),
}}

// member reads an object by its table, and adds its errors at a location.
func member[V any](of *rest.Table[V], r *rest.Reader, at string, errs *rest.FieldErrors) (v V) {
	var found rest.FieldErrors
	of.Read(r, &v, &found)
	errs.AddAll(at, found)
	return v
}

// mapped returns an object with any names of members. Each member is read with element.
func mapped[T any](items func(*rest.Spec) *huma.Schema, element func(to *T, key string, r *rest.Reader, at string, errs *rest.FieldErrors)) rest.Value[T] {
	return rest.Value[T]{
		Describe: func(s *rest.Spec) *huma.Schema {
			return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: items(s)}
		},
		JSON: func(to *T, raw []byte, name string, errs *rest.FieldErrors) string {
			if raw[0] != '{' {
				return "must be an object"
			}
			rest.ReadAgain(raw, func(r *rest.Reader) {
				for key := range r.Members {
					element(to, string(key), r, rest.Under(name, string(key)), errs)
				}
			})
			return ""
		},
	}
}

// names reads a list of names, which must not be empty.
func names[T any](list func(*T) *[]string) rest.Value[T] {
	return rest.Array(1, 0, rest.Described(rest.TextSchema(1, pushes.MaxCategory)), func(to *T, r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
		var (
			s   string
			one = rest.Named(func(to *string, s string) { *to = s }, 1, pushes.MaxCategory)
			raw = r.Value()
		)
		if r.Err != nil {
			return
		}
		if wrong := one.ReadJSON(raw, &s, "", nil); wrong != "" {
			errs.AddJSON(rest.Item(name, i), wrong, raw)
		}
		*list(to) = append((*list(to))[:min(i, len(*list(to)))], s)
	})
}

// readPolicy reads a policy, and returns all errors of the request.
func (h *policies) readPolicy(c *rest.Call, bad *rest.FieldErrors) (d policy.Document, err error) {
	var found rest.FieldErrors
	if _, err = c.Object(rest.MaxBody, bad, func(r *rest.Reader) { policyFields.Read(r, &d, &found) }); err != nil {
		return d, err
	}
	unread := found
	d = d.Folded()
	for _, one := range h.svc.Check(c.Caller.Tenant, d) {
		if unread.Has(one.Field) {
			continue
		}
		if s, ok := one.Value.(string); ok {
			one.Value = rest.Shown(rest.ValidUTF8(s))
		}
		found.Keep(one)
	}
	for i := range found.List {
		if f := &found.List[i].Field; len(*f) > 2*rest.MaxShown {
			*f = fmt.Sprint(rest.Shown(*f))
		}
	}
	bad.AddAll("body", found)
	return d, bad.Err()
}
