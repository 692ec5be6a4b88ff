// Package policies has the operations of the REST API on the policies of tenants.
package policies

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The group of these operations in the documentation.
const Tag = "Policy"

// policies serves the policies of tenants.
type policies struct{ svc *schedule.Policies }

// Operations returns the operations on policies.
func Operations(s *rest.Spec, svc *schedule.Policies) []rest.Operation {
	return (&policies{svc}).routes(s)
}

// Path is the path of the policy.
const Path = "/v1/policy"

// changeParams has the options of a change of the policy.
type changeParams struct {
	apply    policy.Apply
	forecast bool
}

var changeFields = rest.Table[changeParams]{Fields: []rest.Field[changeParams]{
	rest.Row("apply", rest.Optional, rest.OneOf(func(p *changeParams, s policy.Apply) { p.apply = s }, policy.Applies...).Or(string(policy.NewOnly)),
		"The effect on waiting pushes that violate the new policy: none (new_only); each moves to its next free time, or is canceled if there is none (reslot); or all are canceled (cancel). reslot and cancel also need pushes:write.", nil),
	rest.Row("forecast", rest.Optional, rest.Boolean(func(p *changeParams, v bool) { p.forecast = v }).Or("false"),
		"Change nothing, and return the effect that the policy would have on booked pushes.", nil),
}}

// getPolicy answers with the policy in force.
func (h *policies) getPolicy(c *rest.Call) error {
	v, err := h.svc.InForce(c.Request.Context(), c.Caller.Tenant)
	if err != nil {
		return err
	}
	return h.answerPolicy(c, v, nil)
}

func (h *policies) answerPolicy(c *rest.Call, v policy.Version, op *policy.Operation) error {
	view, status := h.policyViewOf(v), http.StatusOK
	c.Header("Etag", strconv.Quote(strconv.FormatInt(v.Number, 10)))
	if op != nil {
		view.Rechecked = &op.PutOff
	}
	if op != nil && (op.Apply != policy.NewOnly || op.PutOff > 0) {
		view.Operation, status = op.ID.String(), http.StatusAccepted
		c.Header("Location", Path+"/operations/"+view.Operation)
	}
	return c.Answer(status, view)
}

// putPolicy puts a policy in force.
func (h *policies) putPolicy(c *rest.Call) error {
	p, change := h.change(c, &c.Errors)
	d, err := h.readPolicy(c, &c.Errors)
	if err != nil {
		return err
	}
	change.Document = &d
	return h.changePolicy(c, p, change)
}

// deletePolicy puts the policy in the operator's file in force.
func (h *policies) deletePolicy(c *rest.Call) error {
	p, change := h.change(c, &c.Errors)
	if err := c.RejectBody(&c.Errors); err != nil {
		return err
	}
	return h.changePolicy(c, p, change)
}

// change reads the options and headers of a change.
func (h *policies) change(c *rest.Call, bad *rest.FieldErrors) (p changeParams, change policy.Change) {
	changeFields.ReadQuery(c.Request, &p, bad)
	return p, policy.Change{By: c.Caller.Actor().ID.String(), If: c.IfVersion(bad), Apply: p.apply}
}

func (h *policies) changePolicy(c *rest.Call, p changeParams, change policy.Change) error {
	switch {
	case p.forecast:
		return h.forecast(c, change)
	case p.apply != policy.NewOnly && !c.Caller.May(push.ScopeWrite):
		return &push.ScopeError{Scope: push.ScopeWrite, Detail: fmt.Sprintf("apply=%s moves or cancels pushes, which needs the scope %s", p.apply, push.ScopeWrite)}
	}
	v, op, err := h.svc.Change(c.Request.Context(), c.Caller.Tenant, change)
	if err != nil {
		return err
	}
	return h.answerPolicy(c, v, op)
}

// forecastTime is the longest time of a forecast, which may take longer than other requests.
const forecastTime = 45 * time.Second

func (h *policies) forecast(c *rest.Call, change policy.Change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), forecastTime)
	defer cancel()
	f, err := h.svc.Forecast(ctx, c.Caller.Tenant, change)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, forecastViewOf(f))
}

// Stale is the problem of a change of another version than the one in force.
var Stale = rest.NewKind("stale-policy", 412, "Stale policy", "The version in If-Match is no longer in force; detail names the version that is.")

// ProblemOf returns the problem for an error about policies, or nil.
func ProblemOf(err error) rest.Problemer {
	if stale, ok := errors.AsType[*policy.StaleError](err); ok {
		p := Stale.Because(stale.Error())
		return &p
	}
	return nil
}
