package config

import (
	"errors"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Policy is the policy of tenants without their own.
type Policy struct {
	policy.Document
	terms *policy.Terms // nil: the policy was not read, or has errors
}

// Terms returns the compiled policy, or nil if it has errors.
func (p Policy) Terms() *policy.Terms {
	if p.terms == nil { // the policy was made in Go
		p.terms, _ = p.Document.Compile(p.Document.ChannelNames())
	}
	return p.terms
}

// Equal reports whether the documents are the same; the terms follow from them.
func (p Policy) Equal(other Policy) bool { return p.Document.Equal(other.Document) }

// ReadPolicy parses the text of a policy file, YAML or JSON. Rules may name the given channels. The error is of type Errors and
// lists all errors by line.
func ReadPolicy(file string, text []byte, channels []string) (Policy, error) {
	var p Policy
	errs := strictyaml.NewEnvironment(nil).ReadYAML(file, text, func(t *strictyaml.Table) {
		p.settings(t, "[]")
		t.Check(func(at strictyaml.Node) { p.compile(at, channels) })
	})
	if len(errs) > 0 {
		return p, errs
	}
	return p, nil
}

// threeRules are the default rules.
const threeRules = "[{name: per-minute, limit: 1, window: 1m}, {name: per-hour, limit: 5, window: 1h}, {name: per-day, limit: 10, window: 24h}]"

func (p *Policy) settings(t *strictyaml.Table, rules string) {
	d := &p.Document
	strictyaml.List(t, "rules", rules, "each must allow a send; [] limits nothing", &d.Rules, ruleSettings)
	strictyaml.NamedMap(t, "categories", "{}", "exceptions for the pushes of a category, by its name", &d.Categories, categorySettings)
	strictyaml.List(t, "quiet_hours", "[]", "hours when nothing is sent", &d.QuietHours, quietSettings)
	t.String("default_zone", optional, "the IANA zone of rules, quiet hours and recipients that name none; UTC if it is not set", &d.DefaultZone, nil)
}

func ruleSettings(r *policy.Rule, t *strictyaml.Table) {
	t.String("name", required, "appears in refusals; unique, 1 to 64 of a-z, 0-9, - and _", &r.Name, shaped(nameShape, nameForm))
	t.OptionalInt("limit", required, "sends allowed within the window, to 100000; 0 blocks all", &r.Limit, 0, policy.MaxLimit)
	t.DurationText("window", optional, "length of the rolling window, 1 millisecond to 1 year", &r.Window, policy.MinWindow, policy.MaxWindow)
	t.String("per", optional, "instead of window, for a rule of a calendar: hour, day, week or month", &r.Per, nil)
	t.String("week_start", optional, "the first day of the week, for a rule per week; monday if it is not set", &r.WeekStart, nil)
	t.String("zone", optional, "for a rule of a calendar: an IANA name, or recipient for each recipient's own; default_zone if it is not set", &r.Zone, nil)
	scopeSettings(t, "rule limits and counts", &r.Channels, &r.Categories)
	t.Bool("shadow", "false", "count and report the pushes that the rule would refuse, and refuse none", &r.Shadow)
}

// scopeSettings are the settings of the scope of a rule or of quiet hours.
func scopeSettings(t *strictyaml.Table, what string, channels, categories *[]string) {
	t.Strings("channels", optional, "the only channels whose pushes the "+what+"; all if it is not set", channels)
	t.Strings("categories", optional, "the only categories whose pushes the "+what+"; all if it is not set", categories)
}

func categorySettings(c *policy.Category, t *strictyaml.Table) {
	t.Bool("bypass", "false", "no rule and no quiet hours refuse its pushes", &c.Bypass)
	t.OptionalBool("counts", optional, "false: its pushes take no place from others", &c.Counts)
	t.String("level", optional, "the service level of its pushes where they wait for a busy channel: urgent, normal or bulk; normal if it is not set", &c.Level, nil)
	t.Ints("reserve", optional, "the number of a rule's places for this category alone, by the names of rules", &c.Reserve)
}

func quietSettings(q *policy.QuietHours, t *strictyaml.Table) {
	t.String("name", required, "appears in refusals; like the name of a rule, and unique among rules and quiet hours", &q.Name, shaped(nameShape, nameForm))
	t.String("from", required, "the time of day when they begin, such as 22:00; it is quiet", &q.From, nil)
	t.String("until", required, "the time of day when they end, to 24:00; it is not quiet", &q.Until, nil)
	t.Strings("days", optional, "the days when they begin: mon, tue, wed, thu, fri, sat, sun; every day if it is not set", &q.Days)
	t.String("zone", optional, "as for a rule", &q.Zone, nil)
	scopeSettings(t, "quiet hours cover", &q.Channels, &q.Categories)
	t.String("action", optional, "reject, or defer: pushes move by themselves to the first free time; reject if it is not set", &q.Action, nil)
}

// compile compiles the document, or reports its errors at places that have no error yet.
func (p *Policy) compile(at strictyaml.Node, channels []string) {
	var err error
	p.Document = p.Document.Folded()
	if p.terms, err = p.Document.Compile(channels); err == nil {
		return
	}
	var wrong invalid.FieldErrors
	errors.As(err, &wrong)
	for _, e := range wrong {
		place := at.Find(e.Field)
		switch {
		case place.HasError():
		case e.Value == nil || e.Value == "" || !place.Given():
			place.BadKey("%s", e.Message)
		default:
			place.BadValue("%s", e.Message)
		}
	}
}
