package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/ratelimit"
)

// limiter decides about speed limits: several together, all or none.
type limiter interface {
	Take(ctx context.Context, tag string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Look(ctx context.Context, tag string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
}

// noLimiter is what an API without one has.
type noLimiter struct{}

func (noLimiter) Take(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func (n noLimiter) Look(ctx context.Context, tag string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error) {
	return n.Take(ctx, tag, cost, rules...)
}

// The bounds of what is taken.
const (
	maxLimitKey = 256 // bytes
	maxCost     = 1_000_000
	maxLimits   = 16
)

// newTake is the schema of what a caller wants to take.
type newTake struct {
	Key    string     `json:"key" minLength:"1" maxLength:"256" doc:"Who or what is limited: your own name for it, 1 to 256 printable bytes. Keys of other tenants are apart." example:"user-7:reply"`
	Limits []newLimit `json:"limits" minItems:"1" maxItems:"16" doc:"All of them must allow the cost, or none is charged. A limit whose definition changes begins anew."`
	Cost   int        `json:"cost,omitempty" minimum:"1" maximum:"1000000" default:"1" doc:"How much is used."`
	DryRun bool       `json:"dry_run,omitempty" doc:"Answer as the live call would, but charge nothing."`
}

// newLimit is the schema of one limit.
type newLimit struct {
	Algorithm string `json:"algorithm" enum:"fixed_window,sliding_log,sliding_window,token_bucket,leaky_bucket" example:"token_bucket"`
	Limit     int    `json:"limit" minimum:"1" maximum:"1000000000" doc:"How much may be used; with sliding_log at most 10000." example:"100"`
	Per       string `json:"per" pattern:"^([0-9]+([.][0-9]+)?(ms|s|m|h))+$" doc:"In which time: whole milliseconds, from 1ms to 8760h." example:"1h"`
	Burst     int    `json:"burst,omitempty" minimum:"1" maximum:"1000000000" doc:"How much may be used at once. Of token_bucket (default: limit) and leaky_bucket (default: 1, which spaces evenly) only." example:"20"`
	Precision string `json:"precision,omitempty" pattern:"^([0-9]+([.][0-9]+)?(ms|s|m|h))+$" doc:"Of sliding_window only: the steps in which it counts, at most per and at least a thousandth of it. Default: a sixtieth." example:"1s"`
}

// takenView is a decision.
type takenView struct {
	Allowed bool        `json:"allowed" doc:"All limits allowed the cost, and unless it was a dry run, all were charged."`
	Limits  []limitView `json:"limits" doc:"In the order of the request."`
}

// limitView is how one limit stands after a decision.
type limitView struct {
	Algorithm    string  `json:"algorithm" example:"sliding_log"`
	Limit        int     `json:"limit" example:"5"`
	PerSeconds   float64 `json:"per_seconds" example:"60"`
	Allowed      bool    `json:"allowed" doc:"This limit had room for the cost."`
	Remaining    int     `json:"remaining" doc:"The highest cost that would be allowed right now."`
	RetryAfterMS *int64  `json:"retry_after_ms" nullable:"true" doc:"After so many milliseconds there is room for the cost, if nobody else comes. null: never, for it is more than the limit ever has."`
	ResetAfterMS int64   `json:"reset_after_ms" doc:"After so many milliseconds it is as if nobody had ever come."`
}

// take spends from speed limits. A refusal is an answer, not a problem.
func (a *api) take(c *call) error {
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
	ask := a.cfg.Limiter.Take
	if f.dryRun {
		ask = a.cfg.Limiter.Look
	}
	d, err := ask(c.r.Context(), "take:"+c.caller.Tenant.String()+":"+f.key, f.cost, f.rules...)
	if err != nil {
		return err
	}
	return a.answer(c.w, http.StatusOK, takenViewOf(f.rules, d))
}

func takenViewOf(rules []ratelimit.Rule, d ratelimit.Decision) takenView {
	v := takenView{Allowed: d.Allowed, Limits: make([]limitView, len(rules))}
	for i, r := range d.Results {
		l := rules[i].Limit
		v.Limits[i] = limitView{
			Algorithm: string(l.Algorithm), Limit: l.Limit, PerSeconds: l.Per.Seconds(),
			Allowed: r.Allowed, Remaining: r.Remaining, ResetAfterMS: ceilMS(r.ResetAfter),
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

// takeForm is a newTake as a caller sent it: what could be read, and what is
// wrong with the rest.
type takeForm struct {
	key    string
	cost   int
	dryRun bool
	rules  []ratelimit.Rule
	fields
}

func readTake(r *reader) takeForm {
	f := takeForm{cost: 1}
	given := map[string]bool{}
	for name := range r.members {
		raw := r.value()
		if r.err != nil {
			return f
		}
		given[string(name)] = true
		switch string(name) {
		case "key":
			f.key = f.text("key", raw, 1, maxLimitKey)
		case "cost":
			f.cost = f.integer("cost", raw, 1, maxCost)
		case "dry_run":
			f.dryRun = f.bool("dry_run", raw)
		case "limits":
			f.readLimits(raw)
		default:
			f.unknown(name, raw)
		}
	}
	for _, name := range []string{"key", "limits"} {
		if !given[name] {
			f.missing(name)
		}
	}
	for i := range f.rules {
		f.rules[i].Subject = f.key
	}
	return f
}

func (f *takeForm) readLimits(raw []byte) {
	if raw[0] != '[' {
		f.bad("limits", "must be an array", raw)
		return
	}
	r, n := newReader(raw), 0
	f.rules = nil
	for i := range r.elements {
		if n++; n > maxLimits {
			r.value()
			continue
		}
		l := readLimit(r)
		where := "limits[" + strconv.Itoa(i) + "]"
		for _, one := range l.faults {
			one.Location = under(where, one.Location)
			f.faults = append(f.faults, one)
		}
		same := slices.IndexFunc(f.rules, func(r ratelimit.Rule) bool { return r.Limit.WithDefaults() == l.WithDefaults() })
		if same >= 0 && len(l.faults) == 0 {
			f.bad(where, fmt.Sprintf("is the same limit as limits[%d]", same), nil)
		}
		f.rules = append(f.rules, ratelimit.Rule{Limit: l.Limit})
	}
	if n == 0 || n > maxLimits {
		f.bad("limits", fmt.Sprintf("must have 1 to %d limits, has %d", maxLimits, n), nil)
	}
}

// limitForm is a newLimit as a caller sent it.
type limitForm struct {
	ratelimit.Limit
	fields
	written map[string][]byte
}

func readLimit(r *reader) limitForm {
	f := limitForm{written: map[string][]byte{}}
	if r.peek() != '{' {
		f.bad("", "must be an object", r.value())
		return f
	}
	for name := range r.members {
		raw := r.value()
		f.written[string(name)] = raw
		switch string(name) {
		case "algorithm":
			f.Algorithm = ratelimit.Algorithm(f.oneOf("algorithm", raw, algorithms()...))
		case "limit":
			f.Limit.Limit = f.integer("limit", raw, 1, ratelimit.MaxLimit)
		case "per":
			f.Per = f.duration("per", raw, ratelimit.MinPer, ratelimit.MaxPer)
		case "burst":
			f.Burst = f.integer("burst", raw, 1, ratelimit.MaxLimit)
		case "precision":
			f.Precision = f.duration("precision", raw, ratelimit.MinPer, ratelimit.MaxPer)
		default:
			f.unknown(name, raw)
		}
	}
	for _, name := range []string{"algorithm", "limit", "per"} {
		if f.written[name] == nil {
			f.missing(name)
		}
	}
	unread := f.fields
	for _, found := range f.Validate() {
		if !unread.faulty(found.Field) {
			f.bad(found.Field, found.Message, f.written[found.Field])
		}
	}
	return f
}

func algorithms() []string {
	words := make([]string, len(ratelimit.Algorithms))
	for i, a := range ratelimit.Algorithms {
		words[i] = string(a)
	}
	return words
}

// integer reads a whole number from least to most.
func (f *fields) integer(name string, raw []byte, least, most int) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < least || n > most {
		f.bad(name, fmt.Sprintf("must be a whole number from %d to %d", least, most), raw)
		return 0
	}
	return n
}

// durationShape is that of the durations that the schema describes.
var durationShape = regexp.MustCompile(`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`)

// duration reads a time span from least to most.
func (f *fields) duration(name string, raw []byte, least, most time.Duration) time.Duration {
	s, ok := f.string(name, raw)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || !durationShape.MatchString(s) || d < least || d > most {
		f.bad(name, fmt.Sprintf("must be a time span from %s to %gh, written like 500ms, 90s or 24h", least, most.Hours()), raw)
		return 0
	}
	return d
}

func takeDoc(s *sketch) *huma.Operation {
	return &huma.Operation{
		OperationID: "take-limits", Method: http.MethodPost, Path: "/v1/limits/take", Tags: []string{tagLimits},
		Summary: "Take from speed limits",
		Description: "Charges all of the limits, or none: what is refused costs nothing. A refusal is a 200 with `allowed: false`. " +
			"The limits exist by being named: nothing has to be made before, and nothing is left of those that are not used. " +
			"They use Redis' clock and are exact to the millisecond. Without Redis there is no decision, but a 503.",
		RequestBody: s.body(newTake{}, exampleTake()),
		Responses: s.responses(http.StatusOK, "Whether the cost is allowed, and how each limit stands.", takenView{}, exampleTaken(),
			invalidRequest, tooLarge, unsupportedMedia),
	}
}
