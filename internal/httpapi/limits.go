package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

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
	Allowed bool        `json:"allowed" doc:"All limits allowed the cost and, except in a dry run, were charged. After a refund or a reset: all limits would allow the cost now."`
	Limits  []limitView `json:"limits" doc:"In the order of the request."`
}

// limitView is how one limit stands after a decision.
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

// take spends from speed limits. A refusal is an answer, not a problem.
func (a *api) take(c *call) error { return a.decide(c, limiter.Take) }

func (a *api) refund(c *call) error { return a.decide(c, limiter.Refund) }
func (a *api) reset(c *call) error  { return a.decide(c, limiter.Reset) }

func (a *api) decide(c *call, ask func(limiter, context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error)) error {
	var f takeForm
	if err := takeFields.readBody(c, &f, &c.bad); err != nil {
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
			Allowed: r.Allowed, Remaining: r.Remaining, ResetAfterMS: ceil(r.ResetAfter, time.Millisecond),
		}
		if own[i] {
			v.Limits[i].Key = rules[i].Subject
		}
		if r.RetryAfter != ratelimit.Never {
			ms := ceil(r.RetryAfter, time.Millisecond)
			v.Limits[i].RetryAfterMS = &ms
		}
	}
	return v
}

// ceil counts the units of a time span, rounded up: a caller that waits for so long is not too early.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
