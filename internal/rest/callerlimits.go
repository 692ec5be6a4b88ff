package rest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

// CallerLimits are the rate limits of callers. All limits of a request must allow it, or none is charged. Refused
// requests are answered at once and cost nothing. While the limiter is away, all requests pass.
type CallerLimits struct {
	// Limiter decides about the limits; nil: there are none.
	Limiter callerLimiter

	PerKey []ratelimit.Limit // of each API key
	PerIP  []ratelimit.Limit // of each client address; in IPv6, of each /64

	// TrustedProxies are the networks of proxies that may set X-Forwarded-For.
	TrustedProxies []netip.Prefix

	// Skipped is called for every request that passed without a decision; nil: such requests are not counted.
	Skipped func()
}

// callerLimiter decides about several rate limits together: all allow a request, or none is charged.
type callerLimiter interface {
	Take(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Peek(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Refund(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
}

// callersOwner keeps all limits of callers together, so that the limits of a key and an address are charged in one step.
const callersOwner = "callers"

// rules returns the limits of a request, and their names.
func (l CallerLimits) rules(address string, key uuid.UUID) (rules []ratelimit.Rule, names []string) {
	add := func(name, subject string, limits []ratelimit.Limit) {
		for i, limit := range limits {
			rules = append(rules, ratelimit.Rule{Subject: name + " " + subject, Limit: limit})
			if i > 0 {
				names = append(names, name+"-"+strconv.Itoa(i+1))
			} else {
				names = append(names, name)
			}
		}
	}
	add("per-ip", address, l.PerIP)
	if key != uuid.Nil {
		add("per-key", key.String(), l.PerKey)
	}
	return rules, names
}

// standings returns the limits and their state, in the form of the IETF's draft RateLimit header fields for HTTP
// (draft-ietf-httpapi-ratelimit-headers). The quota of a bucket is its burst, and its window the time that it needs to fill.
func standings(rules []ratelimit.Rule, names []string, d ratelimit.Decision) (policy, state string) {
	policies, states := make([]string, len(rules)), make([]string, len(rules))
	for i, r := range d.Results {
		limit := rules[i].Limit
		times := float64(r.Limit) / float64(limit.Limit)
		if limit.Refill == ratelimit.Interval {
			times = math.Ceil(times)
		}
		policies[i] = fmt.Sprintf(`"%s";q=%d;w=%d`, names[i], r.Limit, Ceil(time.Duration(float64(limit.Per)*times), time.Second))
		states[i] = fmt.Sprintf(`"%s";r=%d;t=%d`, names[i], r.Remaining, Ceil(r.ResetAfter, time.Second))
	}
	return strings.Join(policies, ", "), strings.Join(states, ", ")
}

// limited returns a refusal with the delay before a retry.
func limited(rules []ratelimit.Rule, names []string, d ratelimit.Decision) error {
	var (
		used []string
		wait time.Duration
	)
	for i, r := range d.Results {
		if !r.Allowed {
			used = append(used, fmt.Sprintf("%s (%d requests per %s)", names[i], rules[i].Limit.Limit, duration.Each(rules[i].Limit.Per)))
			wait = max(wait, r.RetryAfter)
		}
	}
	after := max(Ceil(wait, time.Second), 1)
	return &Refusal{
		Kind: RateLimited, Detail: fmt.Sprintf("too many requests: %s; try again after %d s", strings.Join(used, ", "), after),
		header: http.Header{"Retry-After": {strconv.FormatInt(after, 10)}},
	}
}

// ClientAddress returns the address of the client, or its /64 network in IPv6, where one client has many addresses.
// X-Forwarded-For is read from its end, up to the first address that is not one
// of a trusted proxy.
func (l CallerLimits) ClientAddress(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	client := plainAddress(peer.Addr())
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, ok := readHop(strings.TrimSpace(hop))
		if !ok || !l.trusts(client) {
			break
		}
		client = next
	}
	if client.Is6() {
		network, _ := client.Prefix(64) // it has 128 bits
		return network.String()
	}
	return client.String()
}

func (l CallerLimits) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(l.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// readHop reads an address as proxies write it: bare, in brackets, or with a port.
func readHop(hop string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(hop, "[]")); err == nil {
		return plainAddress(a), true
	}
	a, err := netip.ParseAddrPort(hop)
	return plainAddress(a.Addr()), err == nil
}

// plainAddress returns the one form of an address.
func plainAddress(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
