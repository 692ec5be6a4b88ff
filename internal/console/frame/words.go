package frame

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// Answers of the API are written for programs. This file rewrites them for people.

// machineNames replaces field names in texts of the API with words for people.
var machineNames = strings.NewReplacer("send_at", "the send time", "expires_at", "the time it expires", "retry_at", "the time of the retry", "local_time", "the local time",
	"time_zone", "the time zone", "on_conflict", "what happens at a limit", "the tenant", "the team")

// Words returns a text of the API with words instead of field names.
func Words(text string) string { return machineNames.Replace(text) }

// FaultWords returns the message of a fault for people, with times in the zone that the page shows.
func FaultWords(p *Page, f client.Fault) string {
	text := f.Message
	value, _ := f.Value.(string)
	for _, machine := range []string{f.Limit, value} {
		if at, err := time.Parse(time.RFC3339Nano, machine); err == nil {
			text = strings.Replace(text, ", "+machine, ", "+p.PlainTime(at), 1)
		}
	}
	if !f.Now.IsZero() {
		clocks, zone, _ := FormatTime(f.Now, p.Zones.Shown(), p.Now())
		text = strings.Replace(text, RFC3339(f.Now), clocks+" "+zone, 1)
	}
	return Words(text)
}

// byField groups faults by field name and joins several faults of one field.
func byField(p *Page, all []client.Fault) map[string]string {
	texts := map[string]string{}
	for _, f := range all {
		name, text := FieldOf(f.Location), FaultWords(p, f)
		if before := texts[name]; before != "" {
			text = before + "; " + text
		}
		texts[name] = text
	}
	return texts
}

// startsSentence lists the words that get a capital at the start of a sentence. Any other word can be an id, which must not change.
var startsSentence = []string{"the", "this", "your", "another", "an", "too", "no", "only"}

// plainSentence returns Words of a text that is a sentence of its own.
func plainSentence(text string) string {
	text = Words(text)
	if first, _, _ := strings.Cut(text, " "); slices.Contains(startsSentence, first) {
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return text
}

// plainProblem returns a problem of the API with a detail for people. For a refusal by the quota, it uses the rules in the answer.
func plainProblem(p *Page, problem *client.Problem, err error) *client.Problem {
	var (
		said  = *problem
		full  *client.QuotaExceeded
		quiet *client.QuietHours
		opted *client.OptedOut
		lacks *client.Forbidden
	)
	switch {
	case errors.As(err, &full):
		said.Detail = noPlaceWords(p, full.NoPlace, false)
	case errors.As(err, &quiet):
		said.Detail = noPlaceWords(p, quiet.NoPlace, true)
	case errors.As(err, &opted):
		said.Detail = optedOutWords(opted.OptedOut)
	case errors.As(err, &lacks):
		said.Detail = forbiddenWords(p, lacks.Scope)
		if reason, _, more := strings.Cut(problem.Detail, "; "); more { // the rest names scopes for programs
			said.Detail = plainSentence(reason) + ". " + said.Detail
		}
	default:
		said.Title, said.Detail = strings.ReplaceAll(said.Title, "Tenant cap", "The team’s limit"), plainSentence(problem.Detail)
	}
	return &said
}

// maxShownSends is the maximum number of sends that a sentence names for a rule.
const maxShownSends = 3

// noPlaceWords names the rules that refuse a send and the sends that count towards them.
func noPlaceWords(p *Page, place client.NoPlace, quiet bool) string {
	var all []string
	for _, v := range place.Violations {
		taken := int64(len(v.Conflicts)) + v.ConflictsOmitted
		text := ""
		switch {
		case quiet, v.Limit == 0 && v.Per == "" && !v.Until.IsZero():
			text = BecauseOf("quiet-hours", []string{v.Rule})
		case v.Limit == 0:
			text = "the rule " + v.Rule + " allows nothing"
		default:
			text = BecauseOf("quota-exceeded", []string{v.Rule}) + ": " + RuleWords(v)
			var times []string
			for _, c := range v.Conflicts[:min(len(v.Conflicts), maxShownSends)] {
				times = append(times, p.PlainTime(c.SendAt))
			}
			if more := taken - int64(len(times)); more > 0 && len(times) > 0 {
				times = append(times, Number(more)+" more")
			}
			if len(times) > 0 {
				text += ", used at " + strings.Join(times, "; ")
			}
			if taken < v.Limit {
				text += "; the rest is reserved for another category"
			}
		}
		text = strings.Replace(text, " was ", " is ", 1)
		all = append(all, strings.ToUpper(text[:1])+text[1:]+".")
	}
	return strings.Join(all, " ")
}

// RuleWords describes the limit of a rule, such as "5 in any 1 hour" or "1 in each day".
func RuleWords(v client.Violation) string {
	if v.Per != "" {
		return fmt.Sprintf("%d in each %s", v.Limit, v.Per)
	}
	return fmt.Sprintf("%d in any %s", v.Limit, duration.Words(time.Duration(v.WindowSeconds*float64(time.Second))))
}

func optedOutWords(o client.OptOuts) string {
	var of []string
	for _, c := range o.Channels {
		of = append(of, "the channel "+c)
	}
	for _, c := range o.Categories {
		of = append(of, "the category "+c)
	}
	if o.All || len(of) == 0 {
		of = []string{"all messages"}
	}
	return "The person has opted out of " + strings.Join(of, " and of ") + "."
}

// notForRole returns the error for a user whose role lacks a scope.
func notForRole(scope string) error {
	return &client.Forbidden{Problem: client.Problem{Type: "urn:sendquota:problem:forbidden", Title: "Forbidden", Status: http.StatusForbidden}, Scope: scope}
}

// forbiddenWords names the roles that have a scope.
func forbiddenWords(p *Page, scope string) string {
	var may []string
	for _, role := range user.Roles {
		if holder := (push.Caller{Scopes: role.Scopes()}); holder.May(scope) {
			may = append(may, string(role)+"s")
		}
	}
	if len(may) == 0 || slices.Contains(may, p.Visitor.Role+"s") {
		return "Your role, " + p.Visitor.Role + ", cannot do this. An admin can give you another role."
	}
	list := may[len(may)-1]
	if len(may) > 1 {
		list = strings.Join(may[:len(may)-1], ", ") + " and " + list
	}
	return "Your role, " + p.Visitor.Role + ", cannot do this; " + list + " can. An admin can give you another role."
}

// things maps a part of a path to the name of its resource.
var things = map[string]string{
	"pushes": "message", "campaigns": "campaign", "schedules": "schedule", "users": "user", "webhooks": "webhook", "keys": "API key", "bulk": "bulk change", "pauses": "pause", "channels": "channel",
}

// noSuchThing returns the problem for an address with an invalid id; nil for any other error.
func noSuchThing(p *Page, err error) *client.Problem {
	var invalid *client.Invalid
	if !errors.As(err, &invalid) || len(invalid.Errors) == 0 || slices.ContainsFunc(invalid.Errors, func(f client.Fault) bool { return !strings.HasPrefix(f.Location, "path.") }) {
		return nil
	}
	what := "thing"
	for _, part := range strings.Split(p.Request.URL.Path, "/") {
		if thing := things[part]; thing != "" {
			what = thing
		}
	}
	if strings.HasPrefix(p.Request.URL.Path, Root+"/recipients/") {
		what = "recipient"
	}
	return &client.Problem{Title: "No such " + what, Status: http.StatusNotFound, RequestID: invalid.RequestID,
		Detail: "The id in this address does not exist. Check that you copied all of it."}
}

// BecauseOf describes the reason of a refusal.
func BecauseOf(reason string, rules []string) string {
	list := strings.Join(rules, " and ")
	switch reason {
	case "quota-exceeded":
		if len(rules) == 1 {
			return "the rule " + list + " was full"
		}
		return "the rules " + list + " were full"
	case "quiet-hours":
		return "it was quiet hours (" + list + ")"
	case "opted-out":
		return "they have opted out"
	case TenantCap:
		return "your team’s cap was used up (" + list + ")"
	}
	if list == "" {
		return "it was refused: " + strings.ReplaceAll(reason, "-", " ")
	}
	return "it was refused: " + strings.ReplaceAll(reason, "-", " ") + " (" + list + ")"
}

// TenantCap is the reason of a refusal that no other send time avoids.
const TenantCap = "tenant-cap-exceeded"

// CampaignName returns the name of a campaign for pages.
func CampaignName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "Campaign without a name"
	}
	return c.Name
}

// QuotedName returns the name of a campaign for use in a sentence.
func QuotedName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "the campaign without a name"
	}
	return "“" + c.Name + "”"
}

// CampaignChoice returns the name of a campaign in a select. A campaign without a name shows when it was created.
func (s *Times) CampaignChoice(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return CampaignName(c) + ", created " + s.PlainTime(c.CreatedAt.Truncate(time.Second))
	}
	return c.Name
}

// PhaseWords names a phase.
func PhaseWords(phase client.CampaignPhase) string {
	return strings.ReplaceAll(string(phase), "_", " ")
}
