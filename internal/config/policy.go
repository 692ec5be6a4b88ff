package config

import "time"

// Policy is what protects every recipient of every tenant that has none of its
// own.
type Policy struct {
	Rules []Rule // each must allow a send; empty: nothing is limited
}

// Rule allows a recipient Limit sends in any window of this length.
type Rule struct {
	Name   string        // unique within the policy
	Limit  int           // sends; 0 blocks all
	Window time.Duration // rolling and half-open
}

// threeRules is the policy of those who write none.
const threeRules = "[{name: per-minute, limit: 1, window: 1m}, {name: per-hour, limit: 5, window: 1h}, {name: per-day, limit: 10, window: 24h}]"

const (
	noCalendar = "calendar rules (per, zone) are not supported by this version: use window"
	noScope    = "rules scoped to channels or categories are not supported by this version"
)

func (p *Policy) fields() []field {
	return []field{
		{"rules", threeRules, "each must allow a send; [] limits nothing", list(&p.Rules)},
	}
}

func (r *Rule) fields() []field {
	return []field{
		{"name", required, "appears in refusals; unique, 1 to 64 of a-z, 0-9, - and _", name(&r.Name)},
		{"limit", required, "sends allowed within the window, to 100000; 0 blocks all", integer(&r.Limit, 0, 100_000)},
		{"window", required, "length of the rolling window, 1ms to 8760h", duration(&r.Window, time.Millisecond, 8760*time.Hour)},
		{"per", optional, "", unsupported(noCalendar)},
		{"zone", optional, "", unsupported(noCalendar)},
		{"channels", optional, "", unsupported(noScope)},
		{"categories", optional, "", unsupported(noScope)},
	}
}

func (p *Policy) check(at place) {
	first := map[string]int{}
	for i, r := range p.Rules {
		j, taken := first[r.Name]
		if r.Name != "" && taken {
			at.child("rules").item(i).child("name").fault("must be unique; rules[%d] has it already", j)
			continue
		}
		first[r.Name] = i
	}
}
