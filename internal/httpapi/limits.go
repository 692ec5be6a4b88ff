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

// noLimiter is what an API without one has.
type noLimiter struct{}

func (noLimiter) decide() (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func (n noLimiter) Take(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return n.decide()
}

func (n noLimiter) Peek(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return n.decide()
}

func (n noLimiter) Refund(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return n.decide()
}

func (n noLimiter) Reset(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return n.decide()
}

// The bounds of what is taken.
const (
	maxLimitKey = 256 // bytes
	maxCost     = 1_000_000
	maxLimits   = 16
)

// newTake is the schema of what a caller wants to take, give back or reset.
type newTake struct {
	Key    string     `json:"key,omitempty" minLength:"1" maxLength:"256" doc:"Who or what is limited: your own name for it, 1 to 256 printable bytes. Keys of other tenants are apart. Required, unless each limit has a key of its own." example:"user-7:reply"`
	Limits []newLimit `json:"limits" minItems:"1" maxItems:"16" doc:"All of them must allow the cost, or none is charged. A limit whose definition changes begins anew."`
	Cost   int        `json:"cost,omitempty" minimum:"1" maximum:"1000000" default:"1" doc:"How much is used, or given back."`
	DryRun bool       `json:"dry_run,omitempty" doc:"Answer how the limits stand, and whether they have room for the cost, but change nothing."`
}

// newLimit is the schema of one limit.
type newLimit struct {
	Key       string `json:"key,omitempty" minLength:"1" maxLength:"256" doc:"Who or what this limit is for, instead of the key above. Where Redis is a cluster, all keys of a request must have the same tag: what stands between the first { and the next }, as in {user-7}:reply and {user-7}:app." example:"{user-7}:app"`
	Algorithm string `json:"algorithm" enum:"fixed_window,sliding_log,sliding_window,token_bucket,leaky_bucket" example:"token_bucket"`
	Limit     int    `json:"limit" minimum:"1" maximum:"1000000000" doc:"How much may be used; with sliding_log at most 10000." example:"100"`
	Per       string `json:"per" pattern:"^([0-9]+([.][0-9]+)?(ms|s|m|h))+$" doc:"In which time: whole milliseconds, from 1ms to 8760h." example:"1h"`
	Burst     int    `json:"burst,omitempty" minimum:"1" maximum:"1000000000" doc:"How much may be used at once. Of token_bucket (default: limit) and leaky_bucket (default: 1, which spaces evenly) only." example:"20"`
	Precision string `json:"precision,omitempty" pattern:"^([0-9]+([.][0-9]+)?(ms|s|m|h))+$" doc:"Of sliding_window only: the steps in which it counts, at most per and at least a thousandth of it. Default: a sixtieth." example:"1s"`
	Aligned   bool   `json:"aligned,omitempty" doc:"Of fixed_window only: its windows begin at the multiples of per since 1970, by Redis' clock, and not with a first use: with 1m at each full minute, with 24h at midnight UTC."`
	Refill    string `json:"refill,omitempty" enum:"greedy,interval" doc:"Of token_bucket only: how it gets its tokens. greedy, the default: each as soon as its part of per has passed. interval: limit tokens at once, whenever per has passed since a use found it full."`
}

// takenView is a decision.
type takenView struct {
	Allowed bool        `json:"allowed" doc:"All limits allowed the cost, and unless it was a dry run, all were charged. After a refund or a reset: they would allow it now."`
	Limits  []limitView `json:"limits" doc:"In the order of the request."`
}

// limitView is how one limit stands after a decision.
type limitView struct {
	Key          string  `json:"key,omitempty" doc:"Of the limit, where it has one of its own." example:"{user-7}:app"`
	Algorithm    string  `json:"algorithm" example:"sliding_log"`
	Limit        int     `json:"limit" example:"5"`
	PerSeconds   float64 `json:"per_seconds" example:"60"`
	Allowed      bool    `json:"allowed" doc:"This limit had room for the cost."`
	Remaining    int     `json:"remaining" doc:"The highest cost that would be allowed right now."`
	RetryAfterMS *int64  `json:"retry_after_ms" nullable:"true" doc:"After so many milliseconds there is room for the cost, if nobody else comes. null: never, for it is more than the limit ever has."`
	ResetAfterMS int64   `json:"reset_after_ms" doc:"After so many milliseconds it is as if nobody had ever come."`
}

// take spends from speed limits. A refusal is an answer, not a problem.
func (a *api) take(c *call) error { return a.decide(c, a.cfg.Limiter.Take) }

// refund gives back to speed limits.
func (a *api) refund(c *call) error { return a.decide(c, a.cfg.Limiter.Refund) }

// reset forgets what was used of speed limits.
func (a *api) reset(c *call) error { return a.decide(c, a.cfg.Limiter.Reset) }

func (a *api) decide(c *call, ask func(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error)) error {
	var bad faults
	readQuery(c.r, &bad)
	var f takeForm
	if _, err := c.object(maxBody, &bad, func(r *reader) { f = readTake(r) }); err != nil {
		return err
	}
	bad.addAll("body", f.faults)
	if err := bad.err(); err != nil {
		return err
	}
	if f.dryRun {
		ask = a.cfg.Limiter.Peek
	}
	d, err := ask(c.r.Context(), "take:"+c.caller.Tenant.String()+":", f.cost, f.rules...)
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
			"The limits exist by being named: nothing has to be made before, and nothing is left of those that are not used. "+
			"They use Redis' clock and are exact to the millisecond. Without Redis there is no decision, but a 503; "+
			"the cost may then have been charged.",
		"Whether the cost is allowed, and how each limit stands.")
}

func refundDoc(s *spec) *huma.Operation {
	return s.limitsDoc("refund-limits", "/v1/limits/refund", "Give back to speed limits",
		"Gives the cost back to each of the limits, as far as something is used of it, so that it is never above full: to a window what was used in it, "+
			"to a sliding log or window what was used last, to a bucket its tokens. Send what was sent to take, for a take that was allowed, and soon: what was "+
			"used is not known by name, so a refund of what the limit has forgotten meanwhile gives back what others used. "+
			"A refund can not be repeated safely. After a 503 nobody knows whether it was made: a second one may give back twice, "+
			"and more than the limit would be used.",
		"How each limit stands now: what a dry run of the same take would answer.")
}

func resetDoc(s *spec) *huma.Operation {
	return s.limitsDoc("reset-limits", "/v1/limits/reset", "Reset speed limits",
		"Forgets all that was used of the limits, as if nobody had ever come. Limits with another definition, or of another key, are not touched. It can be repeated safely.",
		"How each limit stands now: what a dry run of the same take would answer.")
}

func (s *spec) limitsDoc(id, path, summary, description, answer string) *huma.Operation {
	return &huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: path, Tags: []string{tagLimits},
		Summary: summary, Description: description,
		RequestBody: s.body(newTake{}, exampleTake()),
		Responses:   s.responses(http.StatusOK, answer, takenView{}, exampleTaken(), invalidRequest, tooLarge, unsupportedMedia),
	}
}
