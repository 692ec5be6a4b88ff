package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
)

func (h *policies) routes(s *spec) []operation {
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
	carrying := need{scope: push.ScopeWrite, when: "with `apply=reslot` or `apply=cancel`"}
	match := []*huma.Param{param("header", "If-Match", ifMatchParam(), `"3"`, huma.Schema{Type: huma.TypeString})}
	return []operation{{
		id: "get-policy", method: http.MethodGet, path: policyPath, tag: tagPolicy, scope: push.ScopePolicyRead, serve: h.getPolicy,
		summary: "Read the policy", description: "Returns the policy in force: the tenant's own, or the policy in the operator's file.",
		status: http.StatusOK, answer: "The policy in force.", example: view, finish: tagged("200"),
	}, {
		id: "put-policy", method: http.MethodPut, path: policyPath, tag: tagPolicy, scope: push.ScopePolicyWrite, also: carrying, serve: h.putPolicy,
		summary: "Change the policy",
		description: "Replaces the whole policy. The new one decides about everything that is submitted after the answer, in all processes. " +
			"Booked pushes keep their times, unless apply changes them; at delivery, the new policy applies to them. " +
			"Due pushes that a rule of the old policy has postponed become due again immediately, and the new policy decides; rechecked counts them.",
		query: &changeFields, headers: match, body: policyFields.body(s, document),
		status: http.StatusOK, answer: "The policy is in force; or, with forecast, its effect.", example: changes, problems: []kind{stalePolicy}, finish: finish,
	}, {
		id: "delete-policy", method: http.MethodDelete, path: policyPath, tag: tagPolicy, scope: push.ScopePolicyWrite, also: carrying, serve: h.deletePolicy,
		summary: "Go back to the operator's policy", description: "After the answer, the policy in the operator's file is in force. Repeating the request changes nothing.",
		query: &changeFields, headers: match, status: http.StatusOK, answer: "The operator's policy is in force; or, with forecast, its effect.", example: changes,
		problems: []kind{stalePolicy}, finish: finish,
	}, {
		id: "list-policy-versions", method: http.MethodGet, path: policyPath + "/versions", tag: tagPolicy, scope: push.ScopePolicyRead, serve: h.listVersions,
		summary: "List the versions of the policy", description: "Lists all policies that the tenant has had, the newest first.",
		query: &versionsParams, status: http.StatusOK, answer: "A page of versions.", example: versionsView{Versions: []versionView{
			{Version: 2, By: "sendquota", At: stamp(exampleTime(0))}, {Version: 1, By: exampleID, At: stamp(exampleTime(-time.Hour)), Policy: maybeDocument{&view.documentView}},
		}},
	}, {
		id: "get-policy-operation", method: http.MethodGet, path: policyPath + "/operations/{id}", tag: tagPolicy, scope: push.ScopePolicyRead, serve: h.getOperation,
		summary: "Read the progress of a policy change", description: "Returns the operation of a change with apply=reslot or apply=cancel, or of a change that makes postponed pushes due again. Another change of the policy replaces it.",
		status: http.StatusOK, answer: "The operation.", example: operationViewOf(policy.Operation{
			ID: uuid.MustParse(exampleID), Version: 3, Apply: policy.Reslot, Status: policy.Running, Looked: 1200, Moved: 17, CreatedAt: exampleTime(0), UpdatedAt: exampleTime(time.Second),
		}), problems: []kind{notFound},
	}, {
		id: "policy-shadow", method: http.MethodGet, path: policyPath + "/shadow", tag: tagPolicy, scope: push.ScopePolicyRead, serve: h.shadow,
		summary:     "Count what shadow rules would refuse",
		description: "Counts the accepted pushes that a rule with shadow: true would have refused, by the minute of their submit. The counts are at most a minute old.",
		query:       &shadowFields, status: http.StatusOK, answer: "The counts.", example: shadowView{[]shadowRuleView{{"trial", "marketing", 42}}},
	}}
}

// tagged documents that an answer bears the version.
func tagged(status string) func(map[string]*huma.Response) {
	return func(all map[string]*huma.Response) {
		addHeader(all[status], "ETag", "The version, for If-Match.")
	}
}

// changed adds what is special to the answers to a change.
func changed(s *spec, all map[string]*huma.Response, view policyView) {
	forecast := changeView{Conflicts: new(1), ByRule: map[string]int{"per-day": 1}, First: []policyConflictView{{exampleID, stamp(exampleTime(0)), "per-day"}}}
	media := all["200"].Content["application/json"]
	media.Examples = map[string]*huma.Example{"changed": {Summary: "The policy is in force", Value: media.Example}, "forecast": {Summary: "With forecast", Value: plainJSON(forecast)}}
	media.Example = nil
	view.Operation = exampleID
	all["202"] = s.response("The policy is in force, and operation applies it to booked pushes.", view)
	addHeader(all["202"], "Location", "The path of the operation.")
	for _, status := range []string{"200", "202"} {
		tagged(status)(all)
	}
}
