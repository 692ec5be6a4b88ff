package httpapi

import (
	"context"
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
	{"apply", optional, oneOf(func(p *changeParams, s policy.Apply) { p.apply = s }, policy.Applies...).or(string(policy.NewOnly)),
		"The effect on waiting pushes that violate the new policy: none (new_only); each moves to its next free time, or is canceled if there is none (reslot); or all are canceled (cancel). reslot and cancel also need pushes:write.", nil},
	{"forecast", optional, boolean(func(p *changeParams, v bool) { p.forecast = v }).or("false"),
		"Change nothing, and return the effect that the policy would have on booked pushes.", nil},
}}

// getPolicy answers with the policy in force.
func (a *api) getPolicy(c *call) error {
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
		view.Rechecked = &op.PutOff
	}
	if op != nil && (op.Apply != policy.NewOnly || op.PutOff > 0) {
		view.Operation, status = op.ID.String(), http.StatusAccepted
		c.w.setHeader("Location", policyPath+"/operations/"+view.Operation)
	}
	return a.answer(c.w, status, view)
}

// putPolicy puts a policy in force.
func (a *api) putPolicy(c *call) error {
	p, change := a.change(c, &c.bad)
	d, err := a.readPolicy(c, &c.bad)
	if err != nil {
		return err
	}
	change.Document = &d
	return a.changePolicy(c, p, change)
}

// deletePolicy goes back to the policy of the operator's file.
func (a *api) deletePolicy(c *call) error {
	p, change := a.change(c, &c.bad)
	if err := c.noBody(&c.bad); err != nil {
		return err
	}
	return a.changePolicy(c, p, change)
}

// change reads what goes with a change beside its body.
func (a *api) change(c *call, bad *fieldErrors) (p changeParams, change policy.Change) {
	changeFields.readQuery(c.r, &p, bad)
	return p, policy.Change{By: c.caller.Actor().ID.String(), If: c.ifVersion(bad), Apply: p.apply}
}

func (a *api) changePolicy(c *call, p changeParams, change policy.Change) error {
	switch {
	case p.forecast:
		return a.forecast(c, change)
	case p.apply != policy.NewOnly && !c.caller.May(push.ScopeWrite):
		return &push.ScopeError{Scope: push.ScopeWrite, Detail: fmt.Sprintf("apply=%s moves or cancels pushes, which needs the scope %s", p.apply, push.ScopeWrite)}
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
