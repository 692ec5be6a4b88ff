package rest

import (
	"context"
	"crypto/sha256"
	"errors"
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
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

type callerKey struct{}

// WithCaller returns a context for requests that another part of this program makes for a known caller, such as a user who has
// signed in. These requests need no key. A request from outside never has such a context.
func WithCaller(ctx context.Context, c push.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// knownCaller returns the caller in the context, if there is one. The error reports a missing scope.
func knownCaller(r *http.Request, scope string) (c push.Caller, known bool, err error) {
	c, known = r.Context().Value(callerKey{}).(push.Caller)
	if known && scope != "" && !c.May(scope) {
		err = &push.ScopeError{Scope: scope, Detail: "your role lacks the scope " + scope}
	}
	return c, known, err
}

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

// admit finds the caller before anything else of the request is read, and charges the limits of callers, including callers
// without a key or the scope.
func (a *API) admit(rec *responseRecorder, c *Call, scope string) error {
	limits := &a.cfg.Callers
	limited := len(limits.PerIP)+len(limits.PerKey) > 0
	address := func() string { return a.clientAddress(c.Request) }
	caller, known, err := knownCaller(c.Request, scope)
	if !known {
		if key, has := bearer(c.Request); limited && has && !a.keys.remembers(sha256.Sum256([]byte(key))) {
			// Looking up the key costs a query. A caller beyond its limit does not reach it.
			if err := a.limit(c, false, address(), uuid.Nil); err != nil {
				return err
			}
		}
		caller, err = a.keys.caller(c.Request, address, scope)
	}
	c.Caller, rec.tenant, rec.key, rec.user = caller, caller.Tenant, caller.Key, caller.User
	if err == nil {
		c.act()
		a.cfg.Neighbours.Seen(caller.Tenant)
	}
	if limited {
		subject := caller.Key
		if known {
			subject = caller.User // users have the limits of a key
		}
		if tooFast := a.limit(c, true, address(), subject); tooFast != nil {
			return tooFast
		}
	}
	return err
}

// act makes the caller the actor of all changes of the request.
func (c *Call) act() {
	if c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead {
		return
	}
	actor := c.Caller.Actor()
	c.Request, c.Writer.Whole = c.Request.WithContext(push.WithActor(c.Request.Context(), actor)), push.WithActor(c.Writer.Whole, actor)
}

// miss answers a request to an unknown path or method. Below /v1, it counts like any other request, against its
// address and its key if that is known, but needs no key: the paths are not secret. All callers of unknown paths take
// turns, like one tenant.
func (a *API) miss(rec *responseRecorder, r *http.Request, answer *Refusal) {
	limits := &a.cfg.Callers
	var tooFast error
	if counts := r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/"); counts {
		c := &Call{Writer: rec, Request: r}
		if len(limits.PerKey) > 0 {
			tooFast = a.admit(rec, c, "")
		} else {
			tooFast = a.limit(c, true, a.clientAddress(r), uuid.Nil)
		}
	}
	if found := (*Refusal)(nil); errors.As(tooFast, &found) && found.Kind == RateLimited {
		answer = found
	}
	// Nothing is read or written within the turn, because the connection may be slow.
	noTurn := a.cfg.Computing.Do(r.Context(), uuid.Nil, func() error { time.Sleep(missPause); return nil })
	if noTurn != nil {
		answer = &Refusal{Kind: RateLimited, Detail: "too many requests to unknown paths are in progress", header: http.Header{"Retry-After": {"1"}}}
	}
	a.fail(rec, r, answer)
}

// missPause is the time of each turn, so that at most a thousand such requests a second are answered for each processor.
const missPause = time.Millisecond

// limit reads or charges the limits of a request, writes their state to the headers, and refuses the request if
// a limit does.
func (a *API) limit(c *Call, charge bool, address string, key uuid.UUID) error {
	rules, names := a.cfg.Callers.rules(address, key)
	if len(rules) == 0 || a.cfg.Callers.Limiter == nil {
		return nil
	}
	ask := callerLimiter.Peek
	if charge {
		ask = callerLimiter.Take
	}
	d, err := ask(a.cfg.Callers.Limiter, c.Request.Context(), callersOwner, 1, rules...)
	if err != nil {
		if charge && a.cfg.Callers.Skipped != nil {
			a.cfg.Callers.Skipped()
		}
		return nil
	}
	policy, state := standings(rules, names, d)
	h := c.Writer.Header()
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{policy}, []string{state}
	if d.Allowed {
		return nil
	}
	return limited(rules, names, d)
}

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

func (a *API) clientAddress(r *http.Request) string { return a.cfg.Callers.ClientAddress(r) }

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
