package httpapi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

// takeForm is a newTake as a caller sent it: what could be read, and what is
// wrong with the rest.
type takeForm struct {
	key    string
	cost   int
	dryRun bool
	rules  []ratelimit.Rule
	own    []bool // the limits that have a key of their own
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
	if !given["key"] && (len(f.rules) == 0 || slices.Contains(f.own, false)) {
		f.bad("key", "is required, unless each limit has a key of its own", nil)
	}
	if !given["limits"] {
		f.missing("limits")
	}
	f.name()
	return f
}

// name tells the limits apart by their keys.
func (f *takeForm) name() {
	for i := range f.rules {
		r := &f.rules[i]
		if !f.own[i] {
			r.Subject = f.key
		}
		r.Tag = ratelimit.TagOf(r.Subject)
		where := limitAt(i)
		same := slices.IndexFunc(f.rules[:i], func(other ratelimit.Rule) bool {
			return other.Subject == r.Subject && other.Limit.WithDefaults() == r.Limit.WithDefaults()
		})
		if same >= 0 && !slices.ContainsFunc(f.faults, func(one invalid.FieldError) bool { return strings.HasPrefix(one.Field, where) }) {
			f.bad(where, "is the same limit as "+limitAt(same), nil)
		}
	}
}

func limitAt(i int) string { return "limits[" + strconv.Itoa(i) + "]" }

// apart says which keys a Redis Cluster keeps away from that of the first limit.
func (f *takeForm) apart() error {
	var bad faults
	for i, r := range f.rules {
		where := "body.key"
		if f.own[i] {
			where = "body." + limitAt(i) + ".key"
		}
		if r.Tag != f.rules[0].Tag {
			bad.add(where, "must have the same {tag} as the key of limits[0], because Redis is a cluster here, which decides only about keys of one tag together; "+
				"the tag is what stands between the first { and the next }, as in {user-7}:reply and {user-7}:app", shown(r.Subject))
		}
	}
	return bad.err()
}

func (f *takeForm) readLimits(raw []byte) {
	if raw[0] != '[' {
		f.bad("limits", "must be an array", raw)
		return
	}
	r, n := newReader(raw), 0
	f.rules, f.own = nil, nil
	for i := range r.elements {
		if n++; n > maxLimits {
			r.value()
			continue
		}
		l := readLimit(r)
		for _, one := range l.faults {
			one.Field = under(limitAt(i), one.Field)
			f.faults = append(f.faults, one)
		}
		f.rules = append(f.rules, ratelimit.Rule{Subject: l.key, Limit: l.Limit})
		f.own = append(f.own, l.written["key"] != nil)
	}
	if n == 0 || n > maxLimits {
		f.bad("limits", fmt.Sprintf("must have 1 to %d limits, has %d", maxLimits, n), nil)
	}
}

// limitForm is a newLimit as a caller sent it.
type limitForm struct {
	key string
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
		case "key":
			f.key = f.text("key", raw, 1, maxLimitKey)
		case "algorithm":
			f.Algorithm = ratelimit.Algorithm(f.oneOf("algorithm", raw, words(ratelimit.Algorithms)...))
		case "limit":
			f.Limit.Limit = f.integer("limit", raw, 1, ratelimit.MaxLimit)
		case "per":
			f.Per = f.duration("per", raw, ratelimit.MinPer, ratelimit.MaxPer)
		case "burst":
			f.Burst = f.integer("burst", raw, 1, ratelimit.MaxLimit)
		case "precision":
			f.Precision = f.duration("precision", raw, ratelimit.MinPer, ratelimit.MaxPer)
		case "aligned":
			f.Aligned = f.bool("aligned", raw)
		case "refill":
			f.Refill = ratelimit.Refill(f.oneOf("refill", raw, words(ratelimit.Refills)...))
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

func words[S ~string](all []S) (words []string) {
	for _, s := range all {
		words = append(words, string(s))
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
