package quota

import (
	"strings"

	"github.com/sendquota/sendquota/internal/redisscript"
)

// This file encodes scopes and calendars for the scripts of the cache. A zero byte separates names: Postgres rejects
// zero bytes, so no name contains one.

// kindText returns the suffix for a kind in a member of the cache.
func kindText(k Kind) string {
	if k == (Kind{}) {
		return ""
	}
	return "\x00" + k.Channel + "\x00" + k.Category
}

// reserveArgs returns the arguments of reserve.lua, and about how many bookings the script reads. Quiet hours need no
// bookings: inTime is false if the booking lies in some.
func reserveArgs(b Booking, p Policy) (args []any, near int, inTime bool) {
	args = append(make([]any, 0, 16), b.ID.String(), b.At.UnixMilli(), kindText(b.Kind), 0)
	var scoped []any
	simple := 0
	for i := range p {
		r := &p[i]
		if r.Periods == nil && r.Counts == nil {
			args = append(args, r.places(), r.Window.Milliseconds())
			simple++
		} else {
			window, from := r.Window, any("")
			if r.Periods != nil {
				begin, end, inside := r.Periods.Around(b.At)
				switch {
				case inside && r.Quiet:
					return nil, 0, false
				case !inside:
					continue
				}
				window, from = end.Sub(begin), begin.UnixMilli()
			}
			scoped = append(scoped, r.places(), window.Milliseconds(), from)
			scoped = append(scoped, scopeArgs(r.Counts)...)
		}
		near = min(near+r.Limit, redisscript.MaxWeight)
	}
	args[3] = simple
	return append(args, scoped...), near, true
}

// scopeArgs returns the three lists of a scope.
func scopeArgs(s *Scope) []any {
	if s == nil {
		return []any{"", "", ""}
	}
	return []any{list(s.Channels), list(s.Categories), list(s.Without)}
}

// list joins names, each between zero bytes; nil gives "".
func list(names []string) string {
	if names == nil {
		return ""
	}
	return "\x00" + strings.Join(names, "\x00") + "\x00"
}
