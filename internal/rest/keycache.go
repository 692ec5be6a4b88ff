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

// Authenticator finds API keys by their SHA-256. An unknown key is [push.ErrNotFound].
type Authenticator interface {
	Key(ctx context.Context, hash [32]byte) (push.Caller, error)
	RecordKeyUse(ctx context.Context, id uuid.UUID) error // records that a key is in use
}

// The lifetimes of the cached answers of the authenticator, and the number of each kind. A revoked key
// works for knownFor longer; an expired one does not.
const (
	knownFor    = time.Second
	unknownFor  = time.Second
	maxRemember = 10_000
	maxLookups  = 4 // at a time, and a quarter of them for one address
	lookupTime  = 5 * time.Second
)

// keyCache finds the callers of API keys, and caches them for a moment, so that most requests need no query.
type keyCache struct {
	keys Authenticator
	now  func() time.Time
	log  *slog.Logger

	asking  singleflight.Group         // requests with the same key share a query
	lookups *bulkhead.Bulkhead[string] // by the caller's address: limits the queries of guessed keys
	mu      sync.RWMutex
	known   map[[32]byte]remembered
	unknown map[[32]byte]remembered // separate, so that guessed keys evict no real ones
}

type remembered struct {
	caller push.Caller
	until  time.Time
}

func newKeyCache(keys Authenticator, now func() time.Time, log *slog.Logger) *keyCache {
	return &keyCache{keys: keys, now: now, log: log, lookups: bulkhead.New[string](maxLookups, maxLookups/4), known: map[[32]byte]remembered{}, unknown: map[[32]byte]remembered{}}
}

// caller returns the caller of a request, and checks the scope, unless it is empty.
func (k *keyCache) caller(r *http.Request, address func() string, scope string) (push.Caller, error) {
	key, ok := bearer(r)
	if !ok {
		return push.Caller{}, Denied("send an API key as Authorization: Bearer <key>")
	}
	c, err := k.find(r.Context(), address, sha256.Sum256([]byte(key)))
	switch {
	case errors.Is(err, push.ErrNotFound):
		return c, Denied("the API key is unknown, expired or revoked")
	case err != nil:
		return c, err
	case scope != "" && !c.May(scope):
		return c, &push.ScopeError{Scope: scope, Detail: "the API key lacks the scope " + scope}
	}
	return c, nil
}

// Denied returns the refusal of a request without a valid key.
func Denied(detail string) error {
	return &Refusal{Kind: Unauthorized, Detail: detail, header: http.Header{"Www-Authenticate": {"Bearer"}}}
}

// bearer returns the key in the only Authorization header.
func bearer(r *http.Request) (string, bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	key = strings.Trim(key, " ")
	return key, strings.EqualFold(scheme, "Bearer") && key != ""
}

// remembers reports whether a key is in the cache.
func (k *keyCache) remembers(hash [32]byte) bool {
	now := k.now()
	k.mu.RLock()
	defer k.mu.RUnlock()
	return now.Before(k.known[hash].until) || now.Before(k.unknown[hash].until)
}

// find returns the caller of a key from the cache, or else from the authenticator. Only SHA-256 hashes are compared, so the time of a
// comparison reveals nothing about a key.
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime) // other requests wait for it, too
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

// ask queries the authenticator and caches its answer, at most until the key ends. The lifetime counts from before the query.
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

// see records that a key is in use. No request waits for it or fails with it.
func (k *keyCache) see(ctx context.Context, id uuid.UUID) {
	if err := k.keys.RecordKeyUse(ctx, id); err != nil {
		k.log.DebugContext(ctx, "could not record the last use of an API key", "key", id, "error", err)
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

// makeRoom deletes expired entries, or a few others if there are none.
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
