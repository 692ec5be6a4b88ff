package quota

import (
	"strings"

	"github.com/sendquota/sendquota/internal/redisscript"
)

// What the scripts of the cache need to know of scopes and calendars. No name has a zero byte, which Postgres does not
// take, so that it can stand between them.

// kindText is a kind in a member of the cache.
func kindText(k Kind) string {
	if k == (Kind{}) {
		return ""
	}
	return "\x00" + k.Channel + "\x00" + k.Category
}

// reserveArgs are the arguments of reserve.lua, and about how many bookings it looks at. Quiet hours need no bookings: it
// is false if the booking lies in some.
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

// scopeArgs are the three lists of a scope.
func scopeArgs(s *Scope) []any {
	if s == nil {
		return []any{"", "", ""}
	}
	return []any{list(s.Channels), list(s.Categories), list(s.Without)}
}

// list is names between zero bytes; nil is empty.
func list(names []string) string {
	if names == nil {
		return ""
	}
	return "\x00" + strings.Join(names, "\x00") + "\x00"
}
