package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// threeRules is the policy of those who write none.
const threeRules = "[{name: per-minute, limit: 1, window: 1m}, {name: per-hour, limit: 5, window: 1h}, {name: per-day, limit: 10, window: 24h}]"

const (
	noCalendar = "calendar rules (per, zone) are not supported by this version: use window"
	noScope    = "rules scoped to channels or categories are not supported by this version"
)

func (c *Config) policy(t *strictyaml.Table) {
	strictyaml.List(t, "rules", threeRules, "each must allow a send; [] limits nothing", (*[]quota.Rule)(&c.Policy), ruleSettings)
	t.Check(c.checkNames)
}

func ruleSettings(r *quota.Rule, t *strictyaml.Table) {
	t.String("name", required, "appears in refusals; unique, 1 to 64 of a-z, 0-9, - and _", &r.Name, shaped(nameShape, nameForm))
	t.Int("limit", required, "sends allowed within the window, to 100000; 0 blocks all", &r.Limit, 0, 100_000)
	t.Duration("window", required, "length of the rolling window, 1ms to 8760h", &r.Window, time.Millisecond, 8760*time.Hour)
	t.Unsupported("per", noCalendar)
	t.Unsupported("zone", noCalendar)
	t.Unsupported("channels", noScope)
	t.Unsupported("categories", noScope)
}

func (c *Config) checkNames(at strictyaml.Place) {
	first := map[string]int{}
	for i, r := range c.Policy {
		j, taken := first[r.Name]
		if r.Name != "" && taken {
			at.Child("rules").Item(i).Child("name").BadValue("must be unique; rules[%d] has it already", j)
			continue
		}
		first[r.Name] = i
	}
}
