package config

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// mostLimits is the maximum length of a list of limits: all of them apply to each request.
const mostLimits = 8

// manyPerSpan is the maximum number of requests or attempts that a speed limit may allow.
const manyPerSpan = ratelimit.MaxLimit

// APILimits are the speed limits of API callers. All limits must allow a
// request, or none is charged. Empty: no limit.
type APILimits struct {
	PerKey []ratelimit.Limit // each API key by itself
	PerIP  []ratelimit.Limit // each client address by itself

	// TrustedProxies are the addresses of proxies that write X-Forwarded-For.
	TrustedProxies []netip.Prefix
}

func (l *APILimits) settings(t *strictyaml.Table) {
	strictyaml.List(t, "per_key", "[]", "limits of each API key, at most 8", &l.PerKey, limitSettings)
	strictyaml.List(t, "per_ip", "[]", "limits of each client address, in IPv6 of each /64, at most 8", &l.PerIP, limitSettings)
	t.Prefixes("trusted_proxies", "[]", "addresses and networks, such as 10.0.0.0/8, of proxies whose X-Forwarded-For is trusted", &l.TrustedProxies)
	t.Check(func(p strictyaml.Node) {
		checkLimits(p, "per_key", l.PerKey)
		checkLimits(p, "per_ip", l.PerIP)
	})
}

// checkLimits rejects a list with too many limits, or with a limit twice.
func checkLimits(p strictyaml.Node, name string, limits []ratelimit.Limit) {
	if p = p.Child(name); len(limits) > mostLimits {
		p.BadKey("must have at most %d limits, has %d", mostLimits, len(limits))
	}
	for i, limit := range limits {
		if first := slices.Index(limits, limit); first < i && len(limit.Validate()) == 0 {
			p.Item(i).BadKey("is the same limit as %s[%d]", name, first)
		}
	}
}

func limitSettings(l *ratelimit.Limit, t *strictyaml.Table) {
	t.OneOf("algorithm", required, "fixed_window, sliding_log, sliding_window, token_bucket or leaky_bucket", (*string)(&l.Algorithm), "fixed_window", "sliding_log", "sliding_window", "token_bucket", "leaky_bucket")
	t.Int("limit", required, "requests per time span; of sliding_log at most 10000", &l.Limit, 1, ratelimit.MaxLimit)
	t.Duration("per", required, "the time span, 1 millisecond to 1 year", &l.Per, ratelimit.MinPer, ratelimit.MaxPer)
	t.Int("burst", optional, "requests at once; without it, limit for token_bucket and 1, which spaces evenly, for leaky_bucket", &l.Burst, 1, ratelimit.MaxLimit)
	t.Duration("precision", optional, "for sliding_window, at most per and at least a thousandth of it; without it, a sixtieth", &l.Precision, ratelimit.MinPer, ratelimit.MaxPer)
	t.Bool("aligned", "false", "for fixed_window: whether windows begin at the multiples of per since 1970, instead of with a first request", &l.Aligned)
	t.OneOf("refill", optional, "for token_bucket: greedy (each token as soon as its part of per has passed) or interval (limit tokens whenever per has passed); without it, greedy", (*string)(&l.Refill), "greedy", "interval")
	t.Check(func(p strictyaml.Node) {
		checkLimit(p, *l)
		*l = l.WithDefaults()
	})
}

func checkLimit(p strictyaml.Node, l ratelimit.Limit) {
	for _, wrong := range l.Validate() {
		switch at := p.Child(wrong.Field); {
		case wrong.Value == "" || wrong.Value == 0 || wrong.Value == "0s": // the setting's own check reports it
		case strings.HasSuffix(wrong.Message, " only"):
			at.BadKey("%s", wrong.Message)
		default:
			at.BadValue("%s", wrong.Message)
		}
	}
}
