package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
)

const policyPath = "/v1/policy"

// changeParams is how a change of the policy is meant.
type changeParams struct {
	apply    policy.Apply
	forecast bool
}

var changeFields = table[changeParams]{fields: []field[changeParams]{
	row("apply", optional, oneOf(func(p *changeParams, s policy.Apply) { p.apply = s }, policy.Applies...).or(string(policy.NewOnly)),
		"The effect on waiting pushes that violate the new policy: none (new_only); each moves to its next free time, or is canceled if there is none (reslot); or all are canceled (cancel). reslot and cancel also need pushes:write.", nil),
	row("forecast", optional, boolean(func(p *changeParams, v bool) { p.forecast = v }).or("false"),
		"Change nothing, and return the effect that the policy would have on booked pushes.", nil),
}}

// getPolicy answers with the policy in force.
func (h *policies) getPolicy(c *call) error {
	v, err := h.svc.InForce(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	return h.answerPolicy(c, v, nil)
}

func (h *policies) answerPolicy(c *call, v policy.Version, op *policy.Operation) error {
	view, status := h.policyViewOf(v), http.StatusOK
	c.header("Etag", strconv.Quote(strconv.FormatInt(v.Number, 10)))
	if op != nil {
		view.Rechecked = &op.PutOff
	}
	if op != nil && (op.Apply != policy.NewOnly || op.PutOff > 0) {
		view.Operation, status = op.ID.String(), http.StatusAccepted
		c.header("Location", policyPath+"/operations/"+view.Operation)
	}
	return c.answer(status, view)
}

// putPolicy puts a policy in force.
func (h *policies) putPolicy(c *call) error {
	p, change := h.change(c, &c.bad)
	d, err := h.readPolicy(c, &c.bad)
	if err != nil {
		return err
	}
	change.Document = &d
	return h.changePolicy(c, p, change)
}

// deletePolicy goes back to the policy of the operator's file.
func (h *policies) deletePolicy(c *call) error {
	p, change := h.change(c, &c.bad)
	if err := c.noBody(&c.bad); err != nil {
		return err
	}
	return h.changePolicy(c, p, change)
}

// change reads what goes with a change beside its body.
func (h *policies) change(c *call, bad *fieldErrors) (p changeParams, change policy.Change) {
	changeFields.readQuery(c.r, &p, bad)
	return p, policy.Change{By: c.caller.Actor().ID.String(), If: c.ifVersion(bad), Apply: p.apply}
}

func (h *policies) changePolicy(c *call, p changeParams, change policy.Change) error {
	switch {
	case p.forecast:
		return h.forecast(c, change)
	case p.apply != policy.NewOnly && !c.caller.May(push.ScopeWrite):
		return &push.ScopeError{Scope: push.ScopeWrite, Detail: fmt.Sprintf("apply=%s moves or cancels pushes, which needs the scope %s", p.apply, push.ScopeWrite)}
	}
	v, op, err := h.svc.Change(c.r.Context(), c.caller.Tenant, change)
	if err != nil {
		return err
	}
	return h.answerPolicy(c, v, op)
}

// forecastTime is how long a forecast may take: longer than other requests.
const forecastTime = 45 * time.Second

func (h *policies) forecast(c *call, change policy.Change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), forecastTime)
	defer cancel()
	f, err := h.svc.Forecast(ctx, c.caller.Tenant, change)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, forecastViewOf(f))
}

var stalePolicy = newKind("stale-policy", 412, "Stale policy", "The version in If-Match is no longer in force; detail names the version that is.")

// policyProblemOf returns the problem for an error about policies, or nil.
func policyProblemOf(err error) problemer {
	if stale, ok := errors.AsType[*policy.StaleError](err); ok {
		p := stalePolicy.because(stale.Error())
		return &p
	}
	return nil
}
