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

// CallerLimits are the speed limits of callers. All that concern a request must allow it, or none is charged. Refused
// requests, too, are answered at once and cost nothing; while nobody can decide, callers pass.
type CallerLimits struct {
	// Limiter decides about them; nil: that of the tenants does.
	Limiter callerLimiter

	PerKey []ratelimit.Limit // of each API key
	PerIP  []ratelimit.Limit // of each client address; in IPv6, of each /64

	// TrustedProxies are those whose word about the client's address counts.
	TrustedProxies []netip.Prefix

	// Skipped is told of every request that passed without a decision; nil: nobody.
	Skipped func()
}

// callerLimiter decides about several rate limits together: all allow a request, or none is charged.
type callerLimiter interface {
	Take(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Peek(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Refund(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
}

// callersOwner keeps all these limits together, so that those of a key and of an address can be charged in one step.
const callersOwner = "callers"

// admit finds the caller, before anything else is looked at, and charges the limits of callers: also those of whoever
// has no key, or not the scope.
func (a *API) admit(rec *responseRecorder, c *Call, scope string) error {
	limits := &a.cfg.Callers
	limited := len(limits.PerIP)+len(limits.PerKey) > 0
	address := func() string { return a.clientAddress(c.Request) }
	caller, known, err := knownCaller(c.Request, scope)
	if !known {
		if key, has := bearer(c.Request); limited && has && !a.keys.remembers(sha256.Sum256([]byte(key))) {
			// To look the key up costs a query. Who may not call does not get so far.
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
			subject = caller.User // who is limited like a key
		}
		if tooFast := a.limit(c, true, address(), subject); tooFast != nil {
			return tooFast
		}
	}
	return err
}

// act has whatever the request changes be done by its caller.
func (c *Call) act() {
	if c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead {
		return
	}
	actor := c.Caller.Actor()
	c.Request, c.Writer.Whole = c.Request.WithContext(push.WithActor(c.Request.Context(), actor)), push.WithActor(c.Writer.Whole, actor)
}

// miss answers a request for which there is no path or no method. Below /v1 it counts like any other, against its
// address and against its key if that is known, but needs none: what paths there are is no secret. All who ask for such paths take
// turns, as one tenant would.
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
	// Within the turn nothing is read or written: a connection may be as slow as its caller likes.
	noTurn := a.cfg.Computing.Do(r.Context(), uuid.Nil, func() error { time.Sleep(missPause); return nil })
	if noTurn != nil {
		answer = &Refusal{Kind: RateLimited, Detail: "too many requests for what does not exist are under way", header: http.Header{"Retry-After": {"1"}}}
	}
	a.fail(rec, r, answer)
}

// missPause is how long each keeps its turn, as long as one that computes: a thousand a second are answered for each processor at most.
const missPause = time.Millisecond

// limit asks the limits that concern a request, or charges them, says in its answer how they stand, and refuses it if
// one of them does.
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

// rules are the limits that concern a request, and their names.
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

// standings are the limits and how they stand, in the form of the IETF's draft RateLimit header fields for HTTP
// (draft-ietf-httpapi-ratelimit-headers). The quota of a bucket is its burst, and its window the time in which it fills.
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

// limited refuses a request, and says when it is worth another try.
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

// ClientAddress is the address that a request comes from, or its network of 64 bits in IPv6, where one client has many.
// X-Forwarded-For counts only as far as trusted proxies wrote it: from its end, up to the first address that is not one
// of theirs.
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

// plainAddress has one form for each address.
func plainAddress(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
