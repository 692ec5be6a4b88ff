package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// Authenticator knows the API keys by their SHA-256. An unknown key is [push.ErrNotFound].
type Authenticator interface {
	Key(ctx context.Context, hash [32]byte) (push.Caller, error)
	SeeKey(ctx context.Context, id uuid.UUID) error // notes that a key is in use
}

// How long the answers of the authenticator are believed, and how many are kept of either kind. A key that is revoked
// works this much longer; one that expires does not.
const (
	knownFor    = time.Second
	unknownFor  = time.Second
	maxRemember = 10_000
	maxLookups  = 4 // at a time, and a quarter of them for one address
	lookupTime  = 5 * time.Second
)

// keyCache finds the callers behind API keys, and remembers them for a moment, so that most requests cost no query.
type keyCache struct {
	keys Authenticator
	now  func() time.Time
	log  *slog.Logger

	asking  singleflight.Group         // requests with the same key ask once
	lookups *bulkhead.Bulkhead[string] // by the caller's address: guessing keys takes no more of Postgres
	mu      sync.RWMutex
	known   map[[32]byte]remembered
	unknown map[[32]byte]remembered // apart, so that guessing keys drives out no real one
}

type remembered struct {
	caller push.Caller
	until  time.Time
}

func newKeyCache(keys Authenticator, now func() time.Time, log *slog.Logger) *keyCache {
	return &keyCache{keys: keys, now: now, log: log, lookups: bulkhead.New[string](maxLookups, maxLookups/4), known: map[[32]byte]remembered{}, unknown: map[[32]byte]remembered{}}
}

// caller finds who makes a request, and whether the key has the scope, if any is wanted.
func (k *keyCache) caller(r *http.Request, address func() string, scope string) (push.Caller, error) {
	key, ok := bearer(r)
	if !ok {
		return push.Caller{}, Denied("send an API key as Authorization: Bearer <key>")
	}
	c, err := k.find(r.Context(), address, sha256.Sum256([]byte(key)))
	switch {
	case errors.Is(err, push.ErrNotFound):
		return c, Denied("the API key is unknown or expired")
	case err != nil:
		return c, err
	case scope != "" && !c.May(scope):
		return c, &push.ScopeError{Scope: scope, Detail: "the API key lacks the scope " + scope}
	}
	return c, nil
}

func Denied(detail string) error {
	return &Refusal{Kind: Unauthorized, Detail: detail, header: http.Header{"Www-Authenticate": {"Bearer"}}}
}

// bearer takes the key out of the only Authorization header.
func bearer(r *http.Request) (string, bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	key = strings.Trim(key, " ")
	return key, strings.EqualFold(scheme, "Bearer") && key != ""
}

// remembers reports whether it takes no question to know a key.
func (k *keyCache) remembers(hash [32]byte) bool {
	now := k.now()
	k.mu.RLock()
	defer k.mu.RUnlock()
	return now.Before(k.known[hash].until) || now.Before(k.unknown[hash].until)
}

// find asks the memory and then the authenticator. Keys are told apart by their SHA-256 alone: how long that takes says
// nothing about any key.
func (k *keyCache) find(ctx context.Context, address func() string, hash [32]byte) (push.Caller, error) {
	now := k.now()
	k.mu.RLock()
	known, unknown := k.known[hash], k.unknown[hash]
	k.mu.RUnlock()
	switch {
	case now.Before(known.until):
		return known.caller, nil
	case now.Before(unknown.until):
		return push.Caller{}, push.ErrNotFound
	}
	asked, err, _ := k.asking.Do(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime) // others wait for it, too
		defer cancel()
		lookup, err := k.lookups.Acquire(ctx, address(), 1)
		if err != nil {
			return nil, fmt.Errorf("look up key: %w: %w", push.ErrUnavailable, ctx.Err())
		}
		defer lookup.Release()
		return k.ask(ctx, hash)
	})
	c, _ := asked.(push.Caller)
	return c, err
}

// ask asks the authenticator, and remembers its answer: no longer than the key lives, counted from before the question.
func (k *keyCache) ask(ctx context.Context, hash [32]byte) (push.Caller, error) {
	now := k.now()
	c, err := k.keys.Key(ctx, hash)
	switch {
	case errors.Is(err, push.ErrNotFound):
		k.remember(k.unknown, hash, remembered{until: now.Add(unknownFor)}, now)
	case err == nil:
		believed := knownFor
		if c.Left > 0 {
			believed = min(believed, c.Left)
		}
		k.remember(k.known, hash, remembered{caller: c, until: now.Add(believed)}, now)
		if c.Unseen {
			go k.see(context.WithoutCancel(ctx), c.Key)
		}
	}
	return c, err
}

// see notes that a key is in use. No request waits for it, or fails with it.
func (k *keyCache) see(ctx context.Context, id uuid.UUID) {
	if err := k.keys.SeeKey(ctx, id); err != nil {
		k.log.DebugContext(ctx, "the last use of a key was not noted", "key", id, "error", err)
	}
}

func (k *keyCache) remember(in map[[32]byte]remembered, hash [32]byte, what remembered, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(in) >= maxRemember {
		makeRoom(in, now)
	}
	in[hash] = what
}

// makeRoom forgets what is over, and a few others if nothing is.
func makeRoom(in map[[32]byte]remembered, now time.Time) {
	before := len(in)
	for hash, r := range in {
		if !now.Before(r.until) {
			delete(in, hash)
		}
	}
	if len(in) < before {
		return
	}
	n := maxRemember / 100
	for hash := range in {
		if n--; n < 0 {
			return
		}
		delete(in, hash)
	}
}
