package console

import (
	"context"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/user"
)

// limiter applies speed limits.
type limiter interface {
	Take(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
	Refund(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
}

// The speed limits of failures: of sign-ins, from one address and of one name; and of links and of ways back from the provider, from one
// address. Each has a budget of its own.
var (
	addressLimit  = ratelimit.Limit{Algorithm: ratelimit.SlidingWindow, Limit: 10, Per: time.Minute}
	nameLimits    = []ratelimit.Limit{{Algorithm: ratelimit.SlidingWindow, Limit: 5, Per: time.Minute}, {Algorithm: ratelimit.SlidingWindow, Limit: 30, Per: time.Hour}}
	linkLimit     = ratelimit.Limit{Algorithm: ratelimit.SlidingWindow, Limit: 30, Per: time.Minute}
	callbackLimit = ratelimit.Limit{Algorithm: ratelimit.SlidingWindow, Limit: 30, Per: time.Minute}
)

// signInOwner is the owner of these limits.
const signInOwner = "sign-in"

// limitOf returns a limit of a subject. Redis gets the subject as an HMAC, because plain hashes of addresses and names can be guessed.
func limitOf(secret []byte, purpose, subject string, limit ratelimit.Limit) ratelimit.Rule {
	return ratelimit.Rule{Subject: hex.EncodeToString(user.Keyed(secret, purpose, subject)), Limit: limit, Tag: signInOwner}
}

// signInRules returns the limits of a sign-in. An empty name has no limit of its own.
func (s *SignIn) signInRules(p *frame.Page, secret []byte, name string) []ratelimit.Rule {
	rules := []ratelimit.Rule{limitOf(secret, "sign-ins of address", s.cfg.Address(p.Request), addressLimit)}
	if name != "" {
		for _, limit := range nameLimits {
			rules = append(rules, limitOf(secret, "sign-ins of name", name, limit))
		}
	}
	return rules
}

// chargeAddress charges an action of an address to a limit.
func (s *SignIn) chargeAddress(p *frame.Page, purpose string, limit ratelimit.Limit) (charged []ratelimit.Rule, err error) {
	secret, err := s.store.Secret(p.Context())
	if err != nil {
		return nil, err
	}
	return s.charge(p, []ratelimit.Rule{limitOf(secret, purpose, s.cfg.Address(p.Request), limit)})
}

// charge charges an attempt and returns the charged rules. It returns an error if there were too many attempts. While Redis does not
// respond, it charges nothing and lets every attempt pass.
func (s *SignIn) charge(p *frame.Page, rules []ratelimit.Rule) (charged []ratelimit.Rule, err error) {
	if s.cfg.Limiter == nil {
		return nil, nil
	}
	d, err := s.cfg.Limiter.Take(p.Context(), signInOwner, 1, rules...)
	if err != nil {
		s.cfg.Log.WarnContext(p.Context(), "cannot limit sign-ins; allowing this one", "error", err)
		return nil, nil
	}
	if d.Allowed {
		return rules, nil
	}
	var wait time.Duration
	for _, r := range d.Results {
		wait = max(wait, r.RetryAfter)
	}
	seconds := max(1, int((wait+time.Second-1)/time.Second))
	p.Writer.Header().Set("Retry-After", strconv.Itoa(seconds))
	return nil, &client.Problem{Title: "Too many attempts", Status: http.StatusTooManyRequests, Detail: "Try again in " + frame.Span(time.Duration(seconds)*time.Second)}
}

// giveBack refunds an attempt that did not fail.
func (s *SignIn) giveBack(p *frame.Page, charged []ratelimit.Rule) {
	if len(charged) == 0 {
		return
	}
	if _, err := s.cfg.Limiter.Refund(context.WithoutCancel(p.Context()), signInOwner, 1, charged...); err != nil {
		s.cfg.Log.WarnContext(p.Context(), "cannot refund sign-in attempt; it counts as a failure", "error", err)
	}
}
