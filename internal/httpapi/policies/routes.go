package policies

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

func (h *policies) routes(s *rest.Spec) []rest.Operation {
	document := policy.Document{
		Rules: []policy.Rule{
			{Name: "per-day", Limit: new(10), Window: "24h"},
			{Name: "marketing-week", Limit: new(3), Per: "week", Zone: policy.OfRecipient, Categories: []string{"marketing"}},
		},
		Categories:  map[string]policy.Category{"receipts": {Reserve: map[string]int{"per-day": 2}}},
		QuietHours:  []policy.QuietHours{{Name: "night", From: "22:00", Until: "08:00", Zone: policy.OfRecipient, Action: "defer"}},
		DefaultZone: "Europe/Berlin",
	}
	view := policyView{Version: 3, Source: "tenant", documentView: documentViewOf(document)}
	changes := changeView{Version: view.Version, Source: view.Source, Rules: view.Rules, Categories: view.Categories, QuietHours: view.QuietHours, DefaultZone: view.DefaultZone, Rechecked: new(12)}
	finish := func(all map[string]*huma.Response) { changed(s, all, view) }
	carrying := rest.Need{Scope: push.ScopeWrite, When: "with `apply=reslot` or `apply=cancel`"}
	match := []*huma.Param{rest.Param("header", "If-Match", rest.IfMatchParam(), `"3"`, huma.Schema{Type: huma.TypeString})}
	return []rest.Operation{{
		ID: "get-policy", Method: http.MethodGet, Path: Path, Tag: Tag, Scope: push.ScopePolicyRead, Serve: h.getPolicy,
		Summary: "Read the policy", Description: "Returns the policy in force: the tenant's own, or the policy in the operator's file.",
		Status: http.StatusOK, Answer: "The policy in force.", Example: view, Finish: tagged("200"),
	}, {
		ID: "put-policy", Method: http.MethodPut, Path: Path, Tag: Tag, Scope: push.ScopePolicyWrite, Also: carrying, Serve: h.putPolicy,
		Summary: "Change the policy",
		Description: "Replaces the whole policy. The new one decides about everything that is submitted after the answer, in all processes. " +
			"Booked pushes keep their times, unless apply changes them; at delivery, the new policy applies to them. " +
			"Due pushes that a rule of the old policy has postponed become due again immediately, and the new policy decides; rechecked counts them.",
		Query: &changeFields, Headers: match, Body: policyFields.Body(s, document),
		Status: http.StatusOK, Answer: "The policy is in force; or, with forecast, its effect.", Example: changes, Problems: []rest.Kind{Stale}, Finish: finish,
	}, {
		ID: "delete-policy", Method: http.MethodDelete, Path: Path, Tag: Tag, Scope: push.ScopePolicyWrite, Also: carrying, Serve: h.deletePolicy,
		Summary: "Go back to the operator's policy", Description: "After the answer, the policy in the operator's file is in force. Repeating the request changes nothing.",
		Query: &changeFields, Headers: match, Status: http.StatusOK, Answer: "The operator's policy is in force; or, with forecast, its effect.", Example: changes,
		Problems: []rest.Kind{Stale}, Finish: finish,
	}, {
		ID: "list-policy-versions", Method: http.MethodGet, Path: Path + "/versions", Tag: Tag, Scope: push.ScopePolicyRead, Serve: h.listVersions,
		Summary: "List the versions of the policy", Description: "Lists all policies that the tenant has had, the newest first.",
		Query: &versionsParams, Status: http.StatusOK, Answer: "A page of versions.", Example: versionsView{Versions: []versionView{
			{Version: 2, By: "sendquota", At: rest.Stamp(rest.ExampleTime(0))}, {Version: 1, By: rest.ExampleID, At: rest.Stamp(rest.ExampleTime(-time.Hour)), Policy: maybeDocument{&view.documentView}},
		}},
	}, {
		ID: "get-policy-operation", Method: http.MethodGet, Path: Path + "/operations/{id}", Tag: Tag, Scope: push.ScopePolicyRead, Serve: h.getOperation,
		Summary: "Read the progress of a policy change", Description: "Returns the operation of a change with apply=reslot or apply=cancel, or of a change that makes postponed pushes due again. Another change of the policy replaces it.",
		Status: http.StatusOK, Answer: "The operation.", Example: operationViewOf(policy.Operation{
			ID: uuid.MustParse(rest.ExampleID), Version: 3, Apply: policy.Reslot, Status: policy.Running, Looked: 1200, Moved: 17, CreatedAt: rest.ExampleTime(0), UpdatedAt: rest.ExampleTime(time.Second),
		}), Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "policy-shadow", Method: http.MethodGet, Path: Path + "/shadow", Tag: Tag, Scope: push.ScopePolicyRead, Serve: h.shadow,
		Summary:     "Count what shadow rules would refuse",
		Description: "Counts the accepted pushes that a rule with shadow: true would have refused, by the minute of their submit. The counts are at most a minute old.",
		Query:       &shadowFields, Status: http.StatusOK, Answer: "The counts.", Example: shadowView{[]shadowRuleView{{"trial", "marketing", 42}}},
	}}
}

// tagged documents that an answer has the version as its ETag.
func tagged(status string) func(map[string]*huma.Response) {
	return func(all map[string]*huma.Response) {
		rest.AddHeader(all[status], "ETag", "The version, for If-Match.")
	}
}

// changed documents the headers of the answers to a change, and the answer with an operation.
func changed(s *rest.Spec, all map[string]*huma.Response, view policyView) {
	forecast := changeView{Conflicts: new(1), ByRule: map[string]int{"per-day": 1}, First: []policyConflictView{{rest.ExampleID, rest.Stamp(rest.ExampleTime(0)), "per-day"}}}
	media := all["200"].Content["application/json"]
	media.Examples = map[string]*huma.Example{"changed": {Summary: "The policy is in force", Value: media.Example}, "forecast": {Summary: "With forecast", Value: rest.PlainJSON(forecast)}}
	media.Example = nil
	view.Operation = rest.ExampleID
	all["202"] = s.Response("The policy is in force, and operation applies it to booked pushes.", view)
	rest.AddHeader(all["202"], "Location", "The path of the operation.")
	for _, status := range []string{"200", "202"} {
		tagged(status)(all)
	}
}
