package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/ratelimit"
)

// limiter decides about speed limits: several together, all or none.
type limiter interface {
	Take(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Peek(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Refund(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Reset(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
}

// takenView is a decision.
type takenView struct {
	Allowed bool        `json:"allowed" doc:"All limits allowed the cost and, unless it was a dry run, were charged. After a refund or a reset: they would allow it now."`
	Limits  []limitView `json:"limits" doc:"In the order of the request."`
}

// limitView is how one limit stands after a decision.
type limitView struct {
	Key          string  `json:"key,omitempty" doc:"Of the limit, if it has a key of its own." example:"{user-7}:app"`
	Algorithm    string  `json:"algorithm" example:"sliding_log"`
	Limit        int     `json:"limit" example:"5"`
	PerSeconds   float64 `json:"per_seconds" example:"60"`
	Allowed      bool    `json:"allowed" doc:"This limit had room for the cost."`
	Remaining    int     `json:"remaining" doc:"The highest cost that would be allowed right now."`
	RetryAfterMS *int64  `json:"retry_after_ms" nullable:"true" doc:"Milliseconds until the limit has room for the cost, if it is not used meanwhile. null: never, because the cost exceeds the limit."`
	ResetAfterMS int64   `json:"reset_after_ms" doc:"Milliseconds until the limit is fully replenished."`
}

// take spends from speed limits. A refusal is an answer, not a problem.
func (a *api) take(c *call) error { return a.decide(c, limiter.Take) }

// refund gives back to speed limits.
func (a *api) refund(c *call) error { return a.decide(c, limiter.Refund) }

// reset forgets what was used of speed limits.
func (a *api) reset(c *call) error { return a.decide(c, limiter.Reset) }

func (a *api) decide(c *call, ask func(limiter, context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error)) error {
	var (
		bad fieldErrors
		f   takeForm
	)
	c.noQuery(&bad)
	if err := takeFields.readBody(c, &f, &bad); err != nil {
		return err
	}
	if err := bad.err(); err != nil {
		return err
	}
	if a.cfg.Limiter == nil {
		return ratelimit.ErrUnavailable
	}
	if f.dryRun {
		ask = limiter.Peek
	}
	d, err := ask(a.cfg.Limiter, c.r.Context(), "take:"+c.caller.Tenant.String()+":", f.cost, f.rules...)
	if errors.Is(err, ratelimit.ErrApart) {
		return f.apart()
	}
	if err != nil {
		return err
	}
	return a.answer(c.w, http.StatusOK, takenViewOf(f.rules, f.own, d))
}

// takenViewOf shows a decision, with the keys of the limits that have their own.
func takenViewOf(rules []ratelimit.Rule, own []bool, d ratelimit.Decision) takenView {
	v := takenView{Allowed: d.Allowed, Limits: make([]limitView, len(rules))}
	for i, r := range d.Results {
		l := rules[i].Limit
		v.Limits[i] = limitView{
			Algorithm: string(l.Algorithm), Limit: l.Limit, PerSeconds: l.Per.Seconds(),
			Allowed: r.Allowed, Remaining: r.Remaining, ResetAfterMS: ceilMS(r.ResetAfter),
		}
		if own[i] {
			v.Limits[i].Key = rules[i].Subject
		}
		if r.RetryAfter != ratelimit.Never {
			ms := ceilMS(r.RetryAfter)
			v.Limits[i].RetryAfterMS = &ms
		}
	}
	return v
}

// ceilMS rounds up: who comes a millisecond later is not too early.
func ceilMS(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func takeDoc(s *spec) *huma.Operation {
	return s.limitsDoc("take-limits", "/v1/limits/take", "Take from speed limits",
		"Charges all of the limits, or none: what is refused costs nothing. A refusal is a 200 with `allowed: false`. "+
			"Limits need no setup: naming one creates it, and an unused one disappears. "+
			"They use Redis' clock and are exact to the millisecond. Without Redis the answer is a 503; "+
			"the cost may then have been charged.",
		"Whether the cost is allowed, and the state of each limit.")
}

func refundDoc(s *spec) *huma.Operation {
	return s.limitsDoc("refund-limits", "/v1/limits/refund", "Give back to speed limits",
		"Gives the cost back to each of the limits, at most as much as is used of it: a window loses it from its count, "+
			"a sliding log or window from its latest uses, a bucket regains its tokens. Send what was sent to a take that was allowed, and soon: "+
			"a limit does not know who used what, so a refund of what has expired meanwhile gives back another caller's use. "+
			"A refund can not be repeated safely. After a 503 it may or may not have been made: a second one may give back twice, "+
			"and let more than the limit be used.",
		"The state of each limit: the answer of a dry run of the same take.")
}

func resetDoc(s *spec) *huma.Operation {
	return s.limitsDoc("reset-limits", "/v1/limits/reset", "Reset speed limits",
		"Replenishes the limits fully. Limits with another definition or another key are not touched. It can be repeated safely.",
		"The state of each limit: the answer of a dry run of the same take.")
}

func (s *spec) limitsDoc(id, path, summary, description, answer string) *huma.Operation {
	return &huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: path, Tags: []string{tagLimits},
		Summary: summary, Description: description,
		RequestBody: takeFields.body(s, exampleTake()),
		Responses:   s.responses(http.StatusOK, answer, takenView{}, exampleTaken(), invalidRequest, tooLarge, unsupportedMedia),
	}
}
