package limits

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/rest"
)

// The bounds of a take.
const (
	maxLimitKey = 256 // bytes
	maxCost     = 1_000_000
	maxLimits   = 16
)

// takeForm is the body of a take, a refund or a reset.
type takeForm struct {
	key    string
	cost   int
	dryRun bool
	rules  []ratelimit.Rule
	own    []bool // whether a limit has its own key
}

var takeFields = rest.Table[takeForm]{SchemaName: "NewTake", Check: (*takeForm).check, Fields: []rest.Field[takeForm]{
	rest.Row("key", rest.Optional, rest.Text(func(f *takeForm, s string) { f.key = s }, 1, maxLimitKey),
		"A name of your choice for the limited person or thing, 1 to 256 printable bytes. Keys of other tenants are separate. Required, unless each limit has its own key.", "user-7:reply"),
	rest.Row("limits", rest.Required, rest.Array(1, maxLimits, limitFields.Schema, (*takeForm).readLimit),
		"All limits must allow the cost, or none is charged. A limit with a changed definition starts empty.", nil),
	rest.Row("cost", rest.Optional, rest.Integer(func(f *takeForm, n int) { f.cost = n }, 1, maxCost).Or("1"), "The amount to use or give back.", nil),
	rest.Row("dry_run", rest.Optional, rest.Boolean(func(f *takeForm, v bool) { f.dryRun = v }),
		"Return the state of the limits, and whether they have room for the cost, but change nothing.", nil),
}}

// limitForm is a limit and its own key, if it has one.
type limitForm struct {
	ratelimit.Limit
	key string
}

var limitFields = rest.Table[limitForm]{SchemaName: "NewLimit", Check: (*limitForm).check, Fields: []rest.Field[limitForm]{
	rest.Row("key", rest.Optional, rest.Text(func(f *limitForm, s string) { f.key = s }, 1, maxLimitKey),
		"Replaces the request's key for this limit. If Redis is a cluster, all keys of a request must have the same tag: the text between the first { and the next }, as in {user-7}:reply and {user-7}:app.", "{user-7}:app"),
	rest.Row("algorithm", rest.Required, rest.OneOf(func(f *limitForm, a ratelimit.Algorithm) { f.Algorithm = a }, ratelimit.Algorithms...), "", "token_bucket"),
	rest.Row("limit", rest.Required, rest.Integer(func(f *limitForm, n int) { f.Limit.Limit = n }, 1, ratelimit.MaxLimit),
		"The maximum amount; with sliding_log at most 10000.", 100),
	rest.Row("per", rest.Required, rest.Span(func(f *limitForm, d time.Duration) { f.Per = d }, ratelimit.MinPer, ratelimit.MaxPer),
		"The time span of the limit: whole milliseconds, from 1 millisecond to 1 year.", "1h"),
	rest.Row("burst", rest.Optional, rest.Integer(func(f *limitForm, n int) { f.Burst = n }, 1, ratelimit.MaxLimit),
		"The maximum amount at once. Only for token_bucket (default: limit) and leaky_bucket (default: 1, which spaces evenly).", 20),
	rest.Row("precision", rest.Optional, rest.Span(func(f *limitForm, d time.Duration) { f.Precision = d }, ratelimit.MinPer, ratelimit.MaxPer),
		"Only for sliding_window: the length of its counting steps, at most per and at least a thousandth of it. Default: a sixtieth.", "1s"),
	rest.Row("aligned", rest.Optional, rest.Boolean(func(f *limitForm, v bool) { f.Aligned = v }),
		"Only for fixed_window: windows begin at multiples of per since 1970 by Redis' clock, not at the first use: with 1m at each full minute, with 24h at midnight UTC.", nil),
	rest.Row("refill", rest.Optional, rest.OneOf(func(f *limitForm, r ratelimit.Refill) { f.Refill = r }, ratelimit.Refills...),
		"Only for token_bucket: how tokens are refilled. greedy, the default: one at a time, evenly over per. interval: limit tokens at once, when per has passed since the first use of a full bucket.", nil),
}}

func (f *takeForm) readLimit(r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
	var (
		l     limitForm
		found rest.FieldErrors
	)
	limitFields.Read(r, &l, &found)
	errs.AddAll(rest.Item(name, i), found)
	f.rules = append(f.rules[:i], ratelimit.Rule{Subject: l.key, Limit: l.Limit})
	f.own = append(f.own[:i], l.key != "" || found.Has("key"))
}

// check adds errors that concern several members of a limit.
func (f *limitForm) check(errs *rest.FieldErrors) {
	unread := *errs
	for _, found := range f.Validate() {
		if !unread.Has(found.Field) {
			found.Value = errs.AsWritten(found)
			errs.Keep(found)
		}
	}
}

// check gives each limit its key, and rejects equal limits.
func (f *takeForm) check(errs *rest.FieldErrors) {
	if f.key == "" && !errs.Has("key") && (len(f.rules) == 0 || slices.Contains(f.own, false)) {
		errs.Add("key", "is required, unless each limit has its own key", nil)
	}
	for i := range f.rules {
		r := &f.rules[i]
		if !f.own[i] {
			r.Subject = f.key
		}
		r.Tag = ratelimit.TagOf(r.Subject)
		where := rest.Item("limits", i)
		same := slices.IndexFunc(f.rules[:i], func(other ratelimit.Rule) bool {
			return other.Subject == r.Subject && other.Limit.WithDefaults() == r.Limit.WithDefaults()
		})
		if same >= 0 && !slices.ContainsFunc(errs.List, func(one invalid.FieldError) bool { return strings.HasPrefix(one.Field, where) }) {
			errs.Add(where, "is the same limit as "+rest.Item("limits", same), nil)
		}
	}
}

// apart returns an error for the keys that a Redis Cluster stores apart from the first limit's key.
func (f *takeForm) apart() error {
	var bad rest.FieldErrors
	for i, r := range f.rules {
		where := "body.key"
		if f.own[i] {
			where = "body." + rest.Item("limits", i) + ".key"
		}
		if r.Tag != f.rules[0].Tag {
			bad.Add(where, "must have the same {tag} as the key of limits[0], because Redis is a cluster here; "+
				"the tag is the text between the first { and the next }, as in {user-7}:reply and {user-7}:app", rest.Shown(r.Subject))
		}
	}
	return bad.Err()
}

var exampleTake = json.RawMessage(`{"key": "user-7:reply", "cost": 1, "dry_run": false, "limits": [
	{"algorithm": "sliding_log", "limit": 5, "per": "60s"}, {"algorithm": "token_bucket", "limit": 100, "per": "1h", "burst": 20}]}`)
