package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/policy"
)

const policyPath = "/v1/policy"

// documentView is a policy as it was written.
type documentView struct {
	Rules       []policy.Rule              `json:"rules"`
	Categories  map[string]policy.Category `json:"categories,omitempty"`
	QuietHours  []policy.QuietHours        `json:"quiet_hours,omitempty"`
	DefaultZone string                     `json:"default_zone,omitempty" doc:"Absent: UTC."`
}

func documentViewOf(d policy.Document) documentView {
	return documentView{Rules: append([]policy.Rule{}, d.Rules...), Categories: d.Categories, QuietHours: d.QuietHours, DefaultZone: d.DefaultZone}
}

// policyView is the policy in force.
type policyView struct {
	Version int64  `json:"version" doc:"A whole number that grows with every change; 0: the tenant never had a policy of its own."`
	Source  string `json:"source" enum:"file,tenant" doc:"Whose policy it is: the operator's, from the file of settings, or the tenant's own."`
	documentView
	Operation string `json:"operation,omitempty" format:"uuid" doc:"What carries the change on to what is booked; GET /v1/policy/operations/{id} says how far."`
}

func (a *api) policyViewOf(v policy.Version) policyView {
	if v.Document == nil {
		return policyView{Version: v.Number, Source: "file", documentView: documentViewOf(a.cfg.Policies.File())}
	}
	return policyView{Version: v.Number, Source: "tenant", documentView: documentViewOf(*v.Document)}
}

// versionView is a policy that the tenant has, or had.
type versionView struct {
	Version int64         `json:"version"`
	At      string        `json:"at" format:"date-time" doc:"From when it was in force."`
	By      string        `json:"by" doc:"The id of the API key that stored it, or sendquota for the operator's tool."`
	Policy  maybeDocument `json:"policy" doc:"null: back to the policy of the operator's file."`
}

// maybeDocument is a document, or null.
type maybeDocument struct{ *documentView }

// MarshalJSON writes it.
func (d maybeDocument) MarshalJSON() ([]byte, error) { return json.Marshal(d.documentView) }

// Schema describes it.
func (maybeDocument) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Nullable: true, Description: "The policy as GET /v1/policy shows it; null: back to that of the operator's file."}
}

type versionsView struct {
	Versions      []versionView `json:"versions" doc:"The newest first."`
	NextPageToken string        `json:"next_page_token" doc:"The page_token of the next page; empty at the end of the list."`
}

// operationView is how far a change has been carried on.
type operationView struct {
	ID        string  `json:"id" format:"uuid"`
	Version   int64   `json:"version" doc:"Of the policy."`
	Apply     string  `json:"apply" enum:"reslot,cancel"`
	Status    string  `json:"status" enum:"running,finished,replaced" doc:"replaced: the policy has changed again before it had finished."`
	Looked    int     `json:"looked" doc:"Waiting pushes that were looked at."`
	Moved     int     `json:"moved" doc:"Pushes that did not fit and were moved to their next free time."`
	Canceled  int     `json:"canceled" doc:"Pushes that did not fit and were canceled."`
	CreatedAt string  `json:"created_at" format:"date-time"`
	UpdatedAt string  `json:"updated_at" format:"date-time"`
	EndedAt   *string `json:"ended_at" format:"date-time" nullable:"true"`
}

func operationViewOf(o policy.Operation) operationView {
	return operationView{
		ID: o.ID.String(), Version: o.Version, Apply: string(o.Apply), Status: string(o.Status), Looked: o.Looked, Moved: o.Moved, Canceled: o.Canceled,
		CreatedAt: stamp(o.CreatedAt), UpdatedAt: stamp(o.UpdatedAt), EndedAt: maybe(o.EndedAt),
	}
}

// forecastView is what a policy would do to what is booked.
type forecastView struct {
	Conflicts int                  `json:"conflicts" doc:"Waiting pushes that do not fit into it."`
	ByRule    map[string]int       `json:"by_rule" doc:"How many of them each rule, or quiet hours, forbid. One that several forbid counts for each."`
	First     []policyConflictView `json:"first" doc:"The first hundred by send time."`
}

type policyConflictView struct {
	Push   string `json:"push" format:"uuid"`
	SendAt string `json:"send_at" format:"date-time"`
	Rule   string `json:"rule" doc:"The first rule, or quiet hours, that forbid it."`
}

func forecastViewOf(f policy.Forecast) forecastView {
	v := forecastView{Conflicts: f.Conflicts, ByRule: f.ByRule, First: viewsOf(f.First, func(c policy.Conflict) policyConflictView {
		return policyConflictView{Push: c.Push.String(), SendAt: stamp(c.SendAt), Rule: c.Rule}
	})}
	if v.ByRule == nil {
		v.ByRule = map[string]int{}
	}
	return v
}

// changeView documents the answer to a change: that of a policyView or, with forecast, that of a forecastView.
type changeView struct {
	Version     int64                      `json:"version,omitempty" doc:"A whole number that grows with every change."`
	Source      string                     `json:"source,omitempty" enum:"file,tenant"`
	Rules       []policy.Rule              `json:"rules,omitempty"`
	Categories  map[string]policy.Category `json:"categories,omitempty"`
	QuietHours  []policy.QuietHours        `json:"quiet_hours,omitempty"`
	DefaultZone string                     `json:"default_zone,omitempty"`

	Conflicts *int                 `json:"conflicts,omitempty" doc:"With forecast, which has none of the members above: waiting pushes that do not fit."`
	ByRule    map[string]int       `json:"by_rule,omitempty" doc:"With forecast: how many of them each rule, or quiet hours, forbid. One that several forbid counts for each."`
	First     []policyConflictView `json:"first,omitempty" doc:"With forecast: the first hundred by send time."`
}

func exampleChange() changeView {
	v := examplePolicy()
	return changeView{Version: v.Version, Source: v.Source, Rules: v.Rules, Categories: v.Categories, QuietHours: v.QuietHours, DefaultZone: v.DefaultZone}
}

func exampleForecastAnswer() changeView {
	f := exampleForecast()
	return changeView{Conflicts: &f.Conflicts, ByRule: f.ByRule, First: f.First}
}

// changeParams is how a change of the policy is meant.
type changeParams struct {
	apply    policy.Apply
	forecast bool
}

var changeFields = table[changeParams]{fields: []field[changeParams]{
	{"apply", optional, oneOf(func(p *changeParams, s policy.Apply) { p.apply = s }, policy.Applies...).or(string(policy.NewOnly)),
		"What becomes of waiting pushes that do not fit: nothing (new_only), each moves to its next free time and without one is canceled (reslot), or they are canceled (cancel).", nil},
	{"forecast", optional, boolean(func(p *changeParams, v bool) { p.forecast = v }).or("false"),
		"Change nothing, and answer with what the policy would do to what is booked.", nil},
}}

// getPolicy answers with the policy in force.
func (a *api) getPolicy(c *call) error {
	var bad fieldErrors
	c.noQuery(&bad)
	if err := bad.err(); err != nil {
		return err
	}
	v, err := a.cfg.Policies.InForce(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	return a.answerPolicy(c, v, nil)
}

func (a *api) answerPolicy(c *call, v policy.Version, op *policy.Operation) error {
	view, status := a.policyViewOf(v), http.StatusOK
	c.w.setHeader("Etag", strconv.Quote(strconv.FormatInt(v.Number, 10)))
	if op != nil {
		view.Operation, status = op.ID.String(), http.StatusAccepted
		c.w.setHeader("Location", policyPath+"/operations/"+view.Operation)
	}
	return a.answer(c.w, status, view)
}

// putPolicy puts a policy in force.
func (a *api) putPolicy(c *call) error {
	var bad fieldErrors
	p, change := a.change(c, &bad)
	d, err := a.readPolicy(c, &bad)
	if err != nil {
		return err
	}
	change.Document = &d
	return a.changePolicy(c, p, change)
}

// deletePolicy goes back to the policy of the operator's file.
func (a *api) deletePolicy(c *call) error {
	var bad fieldErrors
	p, change := a.change(c, &bad)
	if err := c.noBody(&bad); err != nil {
		return err
	}
	return a.changePolicy(c, p, change)
}

// change reads what goes with a change beside its body.
func (a *api) change(c *call, bad *fieldErrors) (p changeParams, change policy.Change) {
	changeFields.readQuery(c.r, &p, bad)
	return p, policy.Change{By: c.caller.Key.String(), If: c.ifMatch(bad), Apply: p.apply}
}

func (a *api) changePolicy(c *call, p changeParams, change policy.Change) error {
	if p.forecast {
		return a.forecast(c, change)
	}
	v, op, err := a.cfg.Policies.Change(c.r.Context(), c.caller.Tenant, change)
	if err != nil {
		return err
	}
	return a.answerPolicy(c, v, op)
}

// forecastTime is how long a forecast may take: longer than other requests.
const forecastTime = 45 * time.Second

func (a *api) forecast(c *call, change policy.Change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), forecastTime)
	defer cancel()
	f, err := a.cfg.Policies.Forecast(ctx, c.caller.Tenant, change)
	if err != nil {
		return err
	}
	return a.answer(c.w, http.StatusOK, forecastViewOf(f))
}

// ifMatch reads the versions of which one must be in force; nil: any may be.
func (c *call) ifMatch(bad *fieldErrors) []int64 {
	var versions []int64
	for _, tag := range strings.Split(strings.Join(c.r.Header["If-Match"], ","), ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || tag == "" && len(c.r.Header["If-Match"]) == 0 {
			return nil
		}
		plain, quoted := strings.TrimPrefix(tag, "W/"), false
		if unquoted, ok := strings.CutPrefix(plain, `"`); ok && strings.HasSuffix(unquoted, `"`) {
			plain, quoted = strings.TrimSuffix(unquoted, `"`), true
		}
		n, err := strconv.ParseUint(plain, 10, 63)
		if err != nil && quoted && len(versions) < 100 {
			versions = append(versions, -1) // the tag of something else
			continue
		}
		if err != nil || len(versions) == 100 {
			bad.add("header.If-Match", `must be the version of a policy, like "3"`, shown(printableASCII(tag)))
			return nil
		}
		versions = append(versions, int64(n))
	}
	return versions
}

// versionsParams is which page of the versions is asked for.
var versionsParams = table[pageParams]{fields: []field[pageParams]{
	{"page_size", optional, integer(func(q *pageParams, n int) { q.size = n }, 1, maxVersions).or(strconv.Itoa(defaultVersions)), "How many versions to answer with, at most.", nil},
	{"page_token", optional, token(func(q *pageParams, s string) { q.token = s }), "The next_page_token of the page before.", nil},
}}

// A version has up to 64 KiB.
const maxVersions, defaultVersions = 100, 50

func (a *api) listVersions(c *call) error {
	var (
		bad    fieldErrors
		q      pageParams
		before int64
		list   = func() string { return "policy versions" }
	)
	versionsParams.readQuery(c.r, &q, &bad)
	readPageToken(q.token, c.caller.Tenant, list, &before, &bad)
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	all, err := a.cfg.Policies.Versions(c.r.Context(), c.caller.Tenant, before, q.size+1)
	if err != nil {
		return err
	}
	var v versionsView
	if len(all) > q.size {
		all = all[:q.size]
		v.NextPageToken = pageToken(all[q.size-1].Number, c.caller.Tenant, list())
	}
	v.Versions = viewsOf(all, func(one policy.Version) versionView {
		view := versionView{Version: one.Number, At: stamp(one.At), By: one.By}
		if one.Document != nil {
			view.Policy.documentView = new(documentViewOf(*one.Document))
		}
		return view
	})
	return a.answer(c.w, http.StatusOK, v)
}

func (a *api) getOperation(c *call) error {
	var bad fieldErrors
	c.noQuery(&bad)
	id := c.pathID("id", &bad)
	if err := bad.err(); err != nil {
		return err
	}
	o, err := a.cfg.Policies.Operation(c.r.Context(), c.caller.Tenant, id)
	if err != nil {
		return noSuch("operation", err)
	}
	return a.answer(c.w, http.StatusOK, operationViewOf(o))
}

// shadowView is what shadow rules would have refused.
type shadowView struct {
	Rules []shadowRuleView `json:"rules" doc:"By the rules' names, then by category."`
}

type shadowRuleView struct {
	Rule        string `json:"rule"`
	Category    string `json:"category" doc:"Of the pushes; empty: they have none."`
	WouldRefuse int    `json:"would_refuse" doc:"Pushes that were accepted, and that the rule would have refused."`
}

// shadowParams is of which time the counts are asked for.
type shadowParams struct{ from, until time.Time }

var shadowFields = table[shadowParams]{fields: []field[shadowParams]{
	{"from", optional, moment(func(p *shadowParams, t time.Time) { p.from = t }), "Only pushes that were submitted in this minute or later. Default: a day before until.", timeExample},
	{"until", optional, moment(func(p *shadowParams, t time.Time) { p.until = t }), "Only pushes that were submitted in a minute before this. Default: now.", timeExample},
}}

func (a *api) shadow(c *call) error {
	var (
		bad fieldErrors
		p   shadowParams
	)
	shadowFields.readQuery(c.r, &p, &bad)
	if p.until.IsZero() {
		p.until = a.cfg.Now().UTC().Add(time.Minute)
	}
	if p.from.IsZero() {
		p.from = p.until.Add(-24 * time.Hour)
	}
	if !p.from.Before(p.until) && len(bad.list) == 0 {
		badParameter(&bad, "until", "must be after from, "+stamp(p.from), stamp(p.until))
	}
	if err := bad.err(); err != nil {
		return err
	}
	counts, err := a.cfg.Policies.Shadow(c.r.Context(), c.caller.Tenant, p.from, p.until)
	if err != nil {
		return err
	}
	return a.answer(c.w, http.StatusOK, shadowView{viewsOf(counts, func(s policy.ShadowCount) shadowRuleView {
		return shadowRuleView{Rule: s.Rule, Category: s.Category, WouldRefuse: s.WouldRefuse}
	})})
}

func examplePolicy() policyView {
	return policyView{Version: 3, Source: "tenant", documentView: documentViewOf(exampleDocument())}
}

func exampleDocument() policy.Document {
	return policy.Document{
		Rules: []policy.Rule{
			{Name: "per-day", Limit: new(10), Window: "24h"},
			{Name: "marketing-week", Limit: new(3), Per: "week", Zone: policy.OfRecipient, Categories: []string{"marketing"}},
		},
		Categories:  map[string]policy.Category{"receipts": {Reserve: map[string]int{"per-day": 2}}},
		QuietHours:  []policy.QuietHours{{Name: "night", From: "22:00", Until: "08:00", Zone: policy.OfRecipient, Action: "defer"}},
		DefaultZone: "Europe/Berlin",
	}
}

func exampleVersions() versionsView {
	d := documentViewOf(exampleDocument())
	all := []versionView{{Version: 2, By: "sendquota"}, {Version: 1, By: exampleID, Policy: maybeDocument{&d}}}
	for i := range all {
		all[i].At = stamp(exampleTime(-time.Duration(i) * time.Hour))
	}
	return versionsView{Versions: slices.Clip(all)}
}

func exampleOperation() operationView {
	return operationViewOf(policy.Operation{
		ID: uuid.MustParse(exampleID), Version: 3, Apply: policy.Reslot, Status: policy.Running, Looked: 1200, Moved: 17, CreatedAt: exampleTime(0), UpdatedAt: exampleTime(time.Second),
	})
}

func exampleForecast() forecastView {
	return forecastViewOf(policy.Forecast{Conflicts: 1, ByRule: map[string]int{"per-day": 1}, First: []policy.Conflict{
		{Push: uuid.MustParse(exampleID), SendAt: exampleTime(0), Rule: "per-day"},
	}})
}

// ifMatchParam documents the header.
func ifMatchParam() string {
	return fmt.Sprintf("The version that the change is made for, like %q. If another one is in force, the answer is 412, and nothing changes.", "3")
}
