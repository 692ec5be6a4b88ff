package policies

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/rest"
)

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
	Version int64  `json:"version" doc:"A whole number that grows with every change; 0: the tenant has never had its own policy."`
	Source  string `json:"source" enum:"file,tenant" doc:"The origin of the policy: file, the operator's file of settings; tenant, the tenant's own."`
	documentView
	Rechecked *int   `json:"rechecked,omitempty" doc:"In answers to a change: your due pushes that a rule had postponed, up to 100,000. Each becomes due again, and the new policy decides."`
	Operation string `json:"operation,omitempty" format:"uuid" doc:"The operation that applies the change to booked pushes; GET /v1/policy/operations/{id} returns its progress."`
}

// TransformSchema adds the members of the document.
func (*policyView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	return rest.WithMembersOf[documentView](r, s)
}

func (h *policies) policyViewOf(v policy.Version) policyView {
	if v.Document == nil {
		return policyView{Version: v.Number, Source: "file", documentView: documentViewOf(h.svc.File())}
	}
	return policyView{Version: v.Number, Source: "tenant", documentView: documentViewOf(*v.Document)}
}

// versionView is a policy that the tenant has, or had.
type versionView struct {
	Version int64         `json:"version"`
	At      string        `json:"at" format:"date-time" doc:"The time from which the policy was in force."`
	By      string        `json:"by" doc:"The id of the user or the API key that stored the policy, or sendquota for the operator's tool."`
	Policy  maybeDocument `json:"policy" doc:"null: the tenant went back to the policy in the operator's file."`
}

// maybeDocument is a document, or null.
type maybeDocument struct{ *documentView }

// MarshalJSON writes it.
func (d maybeDocument) MarshalJSON() ([]byte, error) { return json.Marshal(d.documentView) }

// Schema describes it.
func (maybeDocument) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Nullable: true, Description: "The policy as GET /v1/policy shows it; null: the tenant went back to the policy in the operator's file."}
}

type versionsView struct {
	Versions      []versionView `json:"versions" doc:"The newest first."`
	NextPageToken string        `json:"next_page_token" doc:"The page_token of the next page; empty at the end of the list."`
}

// operationView is the progress of a change.
type operationView struct {
	ID        string  `json:"id" format:"uuid"`
	Version   int64   `json:"version" doc:"The version of the policy."`
	Apply     string  `json:"apply" enum:"new_only,reslot,cancel"`
	Status    string  `json:"status" enum:"running,finished,replaced" doc:"replaced: the policy was changed again before the operation finished."`
	Looked    int     `json:"looked" doc:"Waiting pushes that were examined; one that was moved to a later time may count again."`
	Moved     int     `json:"moved" doc:"Pushes that violated the policy and were moved to their next free time."`
	Canceled  int     `json:"canceled" doc:"Pushes that violated the policy and were canceled."`
	Rechecked int     `json:"rechecked" doc:"Postponed pushes that became due again: the new policy decides about them."`
	CreatedAt string  `json:"created_at" format:"date-time"`
	UpdatedAt string  `json:"updated_at" format:"date-time"`
	EndedAt   *string `json:"ended_at" format:"date-time" nullable:"true"`
}

func operationViewOf(o policy.Operation) operationView {
	return operationView{
		ID: o.ID.String(), Version: o.Version, Apply: string(o.Apply), Status: string(o.Status), Looked: o.Looked, Moved: o.Moved, Canceled: o.Canceled, Rechecked: o.Rechecked,
		CreatedAt: rest.Stamp(o.CreatedAt), UpdatedAt: rest.Stamp(o.UpdatedAt), EndedAt: rest.MaybeTime(o.EndedAt),
	}
}

// forecastView is the effect that a policy would have on booked pushes.
type forecastView struct {
	Conflicts int                  `json:"conflicts" doc:"Waiting pushes that violate the policy."`
	ByRule    map[string]int       `json:"by_rule" doc:"The number of these pushes by the rule or quiet hours that they violate. A push that violates several counts for each."`
	First     []policyConflictView `json:"first" doc:"The first hundred pushes by send time."`
}

type policyConflictView struct {
	Push   string `json:"push" format:"uuid"`
	SendAt string `json:"send_at" format:"date-time"`
	Rule   string `json:"rule" doc:"The first rule or quiet hours that the push violates."`
}

func forecastViewOf(f policy.Forecast) forecastView {
	v := forecastView{Conflicts: f.Conflicts, ByRule: f.ByRule, First: rest.ViewsOf(f.First, func(c policy.Conflict) policyConflictView {
		return policyConflictView{Push: c.Push.String(), SendAt: rest.Stamp(c.SendAt), Rule: c.Rule}
	})}
	if v.ByRule == nil {
		v.ByRule = map[string]int{}
	}
	return v
}

// changeView documents the answer to a change: a policyView or, with forecast, a forecastView.
type changeView struct {
	Version     int64                      `json:"version,omitempty" doc:"A whole number that grows with every change."`
	Source      string                     `json:"source,omitempty" enum:"file,tenant"`
	Rules       []policy.Rule              `json:"rules,omitempty"`
	Categories  map[string]policy.Category `json:"categories,omitempty"`
	QuietHours  []policy.QuietHours        `json:"quiet_hours,omitempty"`
	DefaultZone string                     `json:"default_zone,omitempty"`
	Rechecked   *int                       `json:"rechecked,omitempty" doc:"Your due pushes that a rule had postponed, up to 100,000. Each becomes due again, and the new policy decides."`

	Conflicts *int                 `json:"conflicts,omitempty" doc:"With forecast, instead of the members above: waiting pushes that violate the policy."`
	ByRule    map[string]int       `json:"by_rule,omitempty" doc:"With forecast: the number of these pushes by the rule or quiet hours that they violate. A push that violates several counts for each."`
	First     []policyConflictView `json:"first,omitempty" doc:"With forecast: the first hundred pushes by send time."`
}
