package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/user"
)

// TestSignIn_Limits: of a name from many addresses, and from one address of many names.
func TestSignIn_Limits(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.signIn.cfg.Limiter = b.limiter()
	b.person("ada@x", user.Admin, goodPassword)
	for i := range 5 {
		b.address = "192.0.2." + strconv.Itoa(i)
		b.enter("ada@x", "wrong").has(t, 401)
	}
	b.address = "192.0.2.99"
	r := b.enter("Ada@X", goodPassword)
	r.has(t, 429, "Too many attempts")
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 62 {
		t.Errorf("%v", r.Header)
	}
	if b.inside() {
		t.Error("the limit lets in")
	}
	b.address = "198.51.100.1"
	for i := range 10 {
		b.enter("n"+strconv.Itoa(i)+"@x", "wrong").has(t, 401)
	}
	b.enter("n11@x", "wrong").has(t, 429)
	b.address = "198.51.100.2"
	b.enter("n11@x", "wrong").has(t, 401)
	for _, key := range b.rdb.Keys(t.Context(), "*").Val() {
		if strings.Contains(key, "ada") {
			t.Errorf("Redis has %s", key)
		}
	}
}

// TestSignIn_FailuresOnly: neither sign-ins that succeed, nor links, nor ways back from the provider use up the budget of sign-ins.
func TestSignIn_FailuresOnly(t *testing.T) {
	t.Parallel()
	b, _ := setupOIDC(t)
	b.signIn.cfg.Limiter = b.limiter()
	b.person("ada@x", user.Admin, goodPassword)
	for range 2 * addressLimit.Limit {
		b.get(user.LinkPath + "guess")
		b.get(callbackPath)
		b.get(callbackPath + "?state=x&code=y")
	}
	for range 2 * addressLimit.Limit {
		b.enter("ada@x", goodPassword).has(t, 303)
	}
	b.post(signOutPath)
	for range 5 {
		b.enter("ada@x", "wrong").has(t, 401)
	}
	b.enter("ada@x", goodPassword).has(t, 429)
}

// TestSignIn_LinkLimit: dead links have a budget of their own, and a link that opens is not charged.
func TestSignIn_LinkLimit(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.signIn.cfg.Limiter = b.limiter()
	token, link := user.NewLink()
	if _, err := b.store.CreateUser(t.Context(), user.New{Tenant: b.tenant, Email: "ada@x", Role: user.Viewer, Link: link}); err != nil {
		t.Fatal(err)
	}
	for range linkLimit.Limit + 1 {
		b.get(user.LinkPath+token).has(t, 200)
	}
	for range linkLimit.Limit {
		b.get(user.LinkPath+"guess").has(t, 404)
	}
	b.get(user.LinkPath+"guess").has(t, 429)
	b.enter("ada@x", "wrong").has(t, 401)
	b.address = "192.0.2.2"
	b.get(user.LinkPath+token).has(t, 200)
}

// TestSignIn_RedisNames stores the subjects of limits in Redis as HMACs with the secret of the installation, so that names cannot be guessed.
func TestSignIn_RedisNames(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	limiter := b.limiter()
	b.signIn.cfg.Limiter = limiter
	b.enter("ada@x", "wrong").has(t, 401)
	plain := sha256.Sum256([]byte("ada@x"))
	keyed := limitOf(b.secret(), "sign-ins of name", "ada@x", nameLimits[0])
	guesses := []ratelimit.Rule{keyed}
	for _, subject := range []string{"ada@x", "name ada@x", "name " + hex.EncodeToString(plain[:]), hex.EncodeToString(plain[:])} {
		guesses = append(guesses, ratelimit.Rule{Subject: subject, Limit: nameLimits[0], Tag: signInOwner})
	}
	guesses = append(guesses, limitOf([]byte("another"), "sign-ins of name", "ada@x", nameLimits[0]))
	for i, guess := range guesses {
		d, err := limiter.Peek(t.Context(), signInOwner, 1, guess)
		if err != nil {
			t.Fatal(err)
		}
		if used := nameLimits[0].Limit - d.Results[0].Remaining; (used == 1) != (i == 0) {
			t.Errorf("%s is used %d times", guess.Subject, used)
		}
	}
}

type brokenLimiter struct{}

func (brokenLimiter) Take(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func (brokenLimiter) Refund(context.Context, string, int, ...ratelimit.Rule) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

// TestSignIn_WithoutRedis signs users in while Redis is away.
func TestSignIn_WithoutRedis(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.signIn.cfg.Limiter = brokenLimiter{}
	b.person("ada@x", user.Admin, goodPassword)
	b.enter("ada@x", goodPassword).has(t, 303)
}
