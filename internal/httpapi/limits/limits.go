// Package limits has the operations of the REST API on speed limits.
package limits

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/rest"
)

// The group of these operations in the documentation.
const Tag = "Limits"

// limits serves speed limits.
type limits struct{ limiter Limiter }

// Operations returns the operations on speed limits. Without a limiter, they answer 503.
func Operations(s *rest.Spec, l Limiter) []rest.Operation { return (&limits{l}).routes(s) }

// Limiter decides about several speed limits together: all are charged, or none.
type Limiter interface {
	Take(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Peek(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Refund(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Reset(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
}

// takenView is a decision.
type takenView struct {
	Allowed bool        `json:"allowed" doc:"All limits allowed the cost and, except in a dry run, were charged. After a refund or a reset: all limits would allow the cost now."`
	Limits  []limitView `json:"limits" doc:"In the order of the request."`
}

// limitView is the state of a limit after a decision.
type limitView struct {
	Key          string  `json:"key,omitempty" doc:"The limit's own key, if it has one." example:"{user-7}:app"`
	Algorithm    string  `json:"algorithm" example:"sliding_log"`
	Limit        int     `json:"limit" example:"5"`
	PerSeconds   float64 `json:"per_seconds" example:"60"`
	Allowed      bool    `json:"allowed" doc:"This limit had room for the cost."`
	Remaining    int     `json:"remaining" doc:"The highest cost that would be allowed right now."`
	RetryAfterMS *int64  `json:"retry_after_ms" nullable:"true" doc:"Milliseconds until the limit has room for the cost, if it is not used in between. null: never, because the cost exceeds the limit."`
	ResetAfterMS int64   `json:"reset_after_ms" doc:"Milliseconds until the limit is fully replenished."`
}

// take charges speed limits. A refusal is an answer, not a problem.
func (h *limits) take(c *rest.Call) error { return h.decide(c, Limiter.Take) }

func (h *limits) refund(c *rest.Call) error { return h.decide(c, Limiter.Refund) }
func (h *limits) reset(c *rest.Call) error  { return h.decide(c, Limiter.Reset) }

func (h *limits) decide(c *rest.Call, ask func(Limiter, context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error)) error {
	var f takeForm
	if err := takeFields.ReadBody(c, &f, &c.Errors); err != nil {
		return err
	}
	if h.limiter == nil {
		return ratelimit.ErrUnavailable
	}
	if f.dryRun {
		ask = Limiter.Peek
	}
	d, err := ask(h.limiter, c.Request.Context(), "take:"+c.Caller.Tenant.String()+":", f.cost, f.rules...)
	if errors.Is(err, ratelimit.ErrDifferentTags) {
		return f.apart()
	}
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, takenViewOf(f.rules, f.own, d))
}

// takenViewOf shows a decision, with the keys of limits that have their own.
func takenViewOf(rules []ratelimit.Rule, own []bool, d ratelimit.Decision) takenView {
	v := takenView{Allowed: d.Allowed, Limits: make([]limitView, len(rules))}
	for i, r := range d.Results {
		l := rules[i].Limit
		v.Limits[i] = limitView{
			Algorithm: string(l.Algorithm), Limit: l.Limit, PerSeconds: l.Per.Seconds(),
			Allowed: r.Allowed, Remaining: r.Remaining, ResetAfterMS: rest.Ceil(r.ResetAfter, time.Millisecond),
		}
		if own[i] {
			v.Limits[i].Key = rules[i].Subject
		}
		if r.RetryAfter != ratelimit.Never {
			ms := rest.Ceil(r.RetryAfter, time.Millisecond)
			v.Limits[i].RetryAfterMS = &ms
		}
	}
	return v
}

// ProblemOf returns the problem for an error about speed limits, or nil.
func ProblemOf(err error) rest.Problemer { return rest.PlainProblem(err, plainLimitProblems) }

var plainLimitProblems = []rest.Plain{
	rest.PlainOf(ratelimit.ErrBusy, rest.RateLimited, "the tenant has too many requests below /v1/limits under way; nothing was charged; try again with fewer requests at the same time"),
	rest.PlainOf(ratelimit.ErrUnavailable, rest.Unavailable, "Redis did not answer in time, so the rate limits could not be decided; they may or may not have been charged, refunded or reset"),
}

func (h *limits) routes(s *rest.Spec) []rest.Operation {
	rules := []ratelimit.Rule{
		{Limit: ratelimit.Limit{Algorithm: ratelimit.SlidingLog, Limit: 5, Per: time.Minute}},
		{Limit: ratelimit.Limit{Algorithm: ratelimit.TokenBucket, Limit: 100, Per: time.Hour, Burst: 20}},
	}
	taken := takenViewOf(rules, make([]bool, len(rules)), ratelimit.Decision{Allowed: true, Results: []ratelimit.Result{
		{Allowed: true, Limit: 5, Remaining: 4, ResetAfter: time.Minute}, {Allowed: true, Limit: 20, Remaining: 19, ResetAfter: 36 * time.Second},
	}})
	body := takeFields.Body(s, exampleTake)
	return []rest.Operation{{
		ID: "take-limits", Method: http.MethodPost, Path: "/v1/limits/take", Tag: Tag, Scope: push.ScopeLimits, Serve: h.take,
		Summary: "Take from speed limits",
		Description: "Charges all of the limits, or none: a refused request costs nothing. A refusal is a 200 with `allowed: false`. " +
			"Limits need no setup: the first use creates a limit, and an unused one disappears. " +
			"They use Redis' clock and are exact to the millisecond. Without Redis the answer is a 503; " +
			"the cost may then have been charged.",
		Body: body, Status: http.StatusOK, Answer: "Whether the cost is allowed, and the state of each limit.", Example: taken,
	}, {
		ID: "refund-limits", Method: http.MethodPost, Path: "/v1/limits/refund", Tag: Tag, Scope: push.ScopeLimits, Serve: h.refund,
		Summary: "Give back to speed limits",
		Description: "Gives the cost back to each of the limits, at most the amount that is used: a window subtracts it from its count, " +
			"a sliding log or window removes its latest uses, a bucket regains its tokens. Send the same body as the allowed take, and send it soon: " +
			"a limit does not record who used it, so the refund of an expired use gives back another caller's use. " +
			"A refund cannot be repeated safely. After a 503, it may or may not have been made: a second one may give the cost back twice, " +
			"and so allow more than the limit.",
		Body: body, Status: http.StatusOK, Answer: "The state of each limit, as a dry run of the same take returns it.", Example: taken,
	}, {
		ID: "reset-limits", Method: http.MethodPost, Path: "/v1/limits/reset", Tag: Tag, Scope: push.ScopeLimits, Serve: h.reset,
		Summary:     "Reset speed limits",
		Description: "Replenishes the limits fully. Limits with another definition or another key stay unchanged. The request can be repeated safely.",
		Body:        body, Status: http.StatusOK, Answer: "The state of each limit, as a dry run of the same take returns it.", Example: taken,
	}}
}
