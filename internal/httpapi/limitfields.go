package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

// The bounds of what is taken.
const (
	maxLimitKey = 256 // bytes
	maxCost     = 1_000_000
	maxLimits   = 16
)

// takeForm is what a caller wants to take, give back or reset.
type takeForm struct {
	key    string
	cost   int
	dryRun bool
	rules  []ratelimit.Rule
	own    []bool // the limits that have a key of their own
}

var takeFields = table[takeForm]{schemaName: "NewTake", check: (*takeForm).check, fields: []field[takeForm]{
	row("key", optional, text(func(f *takeForm, s string) { f.key = s }, 1, maxLimitKey),
		"A name of your choice for the limited person or thing, 1 to 256 printable bytes. Keys of other tenants are separate. Required, unless each limit has its own key.", "user-7:reply"),
	row("limits", required, array(1, maxLimits, limitFields.schema, (*takeForm).readLimit),
		"All limits must allow the cost, or none is charged. A limit with a changed definition starts empty.", nil),
	row("cost", optional, integer(func(f *takeForm, n int) { f.cost = n }, 1, maxCost).or("1"), "The amount to use or give back.", nil),
	row("dry_run", optional, boolean(func(f *takeForm, v bool) { f.dryRun = v }),
		"Return the state of the limits, and whether they have room for the cost, but change nothing.", nil),
}}

// limitForm is one limit, and its own key, if it has one.
type limitForm struct {
	ratelimit.Limit
	key string
}

var limitFields = table[limitForm]{schemaName: "NewLimit", check: (*limitForm).check, fields: []field[limitForm]{
	row("key", optional, text(func(f *limitForm, s string) { f.key = s }, 1, maxLimitKey),
		"Replaces the request's key for this limit. If Redis is a cluster, all keys of a request must have the same tag: the text between the first { and the next }, as in {user-7}:reply and {user-7}:app.", "{user-7}:app"),
	row("algorithm", required, oneOf(func(f *limitForm, a ratelimit.Algorithm) { f.Algorithm = a }, ratelimit.Algorithms...), "", "token_bucket"),
	row("limit", required, integer(func(f *limitForm, n int) { f.Limit.Limit = n }, 1, ratelimit.MaxLimit),
		"The maximum amount; with sliding_log at most 10000.", 100),
	row("per", required, span(func(f *limitForm, d time.Duration) { f.Per = d }, ratelimit.MinPer, ratelimit.MaxPer),
		"The time span of the limit: whole milliseconds, from 1 millisecond to 1 year.", "1h"),
	row("burst", optional, integer(func(f *limitForm, n int) { f.Burst = n }, 1, ratelimit.MaxLimit),
		"The maximum amount at once. Only for token_bucket (default: limit) and leaky_bucket (default: 1, which spaces evenly).", 20),
	row("precision", optional, span(func(f *limitForm, d time.Duration) { f.Precision = d }, ratelimit.MinPer, ratelimit.MaxPer),
		"Only for sliding_window: the length of its counting steps, at most per and at least a thousandth of it. Default: a sixtieth.", "1s"),
	row("aligned", optional, boolean(func(f *limitForm, v bool) { f.Aligned = v }),
		"Only for fixed_window: windows begin at multiples of per since 1970 by Redis' clock, not at the first use: with 1m at each full minute, with 24h at midnight UTC.", nil),
	row("refill", optional, oneOf(func(f *limitForm, r ratelimit.Refill) { f.Refill = r }, ratelimit.Refills...),
		"Only for token_bucket: how tokens are refilled. greedy, the default: one at a time, evenly over per. interval: limit tokens at once, when per has passed since the first use of a full bucket.", nil),
}}

func (f *takeForm) readLimit(r *reader, i int, name string, errs *fieldErrors) {
	var (
		l     limitForm
		found fieldErrors
	)
	limitFields.read(r, &l, &found)
	errs.addAll(item(name, i), found)
	f.rules = append(f.rules[:i], ratelimit.Rule{Subject: l.key, Limit: l.Limit})
	f.own = append(f.own[:i], l.key != "" || found.has("key"))
}

// check finds what only the fields of a limit together can tell.
func (f *limitForm) check(text []byte, errs *fieldErrors) {
	unread := *errs
	for _, found := range f.Validate() {
		if !unread.has(found.Field) {
			found.Value = asWritten(text, found)
			errs.keep(found)
		}
	}
}

// check gives each limit its key, and tells the limits apart by their keys.
func (f *takeForm) check(_ []byte, errs *fieldErrors) {
	if f.key == "" && !errs.has("key") && (len(f.rules) == 0 || slices.Contains(f.own, false)) {
		errs.add("key", "is required, unless each limit has its own key", nil)
	}
	for i := range f.rules {
		r := &f.rules[i]
		if !f.own[i] {
			r.Subject = f.key
		}
		r.Tag = ratelimit.TagOf(r.Subject)
		where := item("limits", i)
		same := slices.IndexFunc(f.rules[:i], func(other ratelimit.Rule) bool {
			return other.Subject == r.Subject && other.Limit.WithDefaults() == r.Limit.WithDefaults()
		})
		if same >= 0 && !slices.ContainsFunc(errs.list, func(one invalid.FieldError) bool { return strings.HasPrefix(one.Field, where) }) {
			errs.add(where, "is the same limit as "+item("limits", same), nil)
		}
	}
}

// apart says which keys a Redis Cluster keeps away from that of the first limit.
func (f *takeForm) apart() error {
	var bad fieldErrors
	for i, r := range f.rules {
		where := "body.key"
		if f.own[i] {
			where = "body." + item("limits", i) + ".key"
		}
		if r.Tag != f.rules[0].Tag {
			bad.add(where, "must have the same {tag} as the key of limits[0], because Redis is a cluster here; "+
				"the tag is the text between the first { and the next }, as in {user-7}:reply and {user-7}:app", shown(r.Subject))
		}
	}
	return bad.err()
}

var exampleTake = json.RawMessage(`{"key": "user-7:reply", "cost": 1, "dry_run": false, "limits": [
	{"algorithm": "sliding_log", "limit": 5, "per": "60s"}, {"algorithm": "token_bucket", "limit": 100, "per": "1h", "burst": 20}]}`)
