package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

const keysPath = "/v1/keys"

// keyring keeps API keys. Another tenant's key is [push.ErrNotFound].
type keyring interface {
	CreateKey(ctx context.Context, n push.NewKey) (k push.APIKey, secret string, err error)
	APIKey(ctx context.Context, tenant, id uuid.UUID) (push.APIKey, error)
	KeyPage(ctx context.Context, tenant uuid.UUID, after push.KeyPosition, limit int) (push.KeyPage, error)
	RotateKey(ctx context.Context, by *push.Caller, old uuid.UUID, overlap, lifetime time.Duration) (k push.APIKey, secret string, err error)
	RevokeKey(ctx context.Context, by *push.Caller, id uuid.UUID) (before bool, err error)
}

// keyView is an API key as the API shows it.
type keyView struct {
	ID         string        `json:"id" format:"uuid"`
	Name       string        `json:"name" doc:"Empty: no name."`
	State      push.KeyState `json:"state" enum:"live,expired,revoked" doc:"Only a live key is accepted."`
	Scopes     []string      `json:"scopes"`
	CreatedAt  string        `json:"created_at" format:"date-time"`
	ExpiresAt  *string       `json:"expires_at" format:"date-time" nullable:"true" doc:"null: never."`
	LastUsedAt *string       `json:"last_used_at" format:"date-time" nullable:"true" doc:"Accurate to about a minute; null: never."`
	RevokedAt  *string       `json:"revoked_at" format:"date-time" nullable:"true"`
	Successor  *string       `json:"successor" format:"uuid" nullable:"true" doc:"The key that the last rotation created."`
	Secret     string        `json:"secret,omitempty" doc:"The key itself, for Authorization: Bearer. Returned only when a key is created or rotated: store it."`
}

type keysView struct {
	Keys          []keyView `json:"keys" doc:"The oldest first."`
	NextPageToken string    `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

// keyViewOf shows an API key, without its secret.
func keyViewOf(k push.APIKey) keyView {
	v := keyView{
		ID: k.ID.String(), Name: k.Name, State: k.State, Scopes: append([]string{}, k.Scopes...), CreatedAt: stamp(k.CreatedAt),
		ExpiresAt: maybePast(k.ExpiresAt), LastUsedAt: maybePast(k.LastUsedAt), RevokedAt: maybePast(k.RevokedAt),
	}
	if k.Successor != uuid.Nil {
		v.Successor = maybeText(k.Successor.String())
	}
	return v
}

// keyForm is an API key as a caller asks for it.
type keyForm struct {
	name    string
	scopes  []string
	expires time.Time
	now     time.Time
}

var keyFields = table[keyForm]{schemaName: "NewKey", refuse: unchosen, check: (*keyForm).check, fields: []field[keyForm]{
	row("scopes", required, array(1, len(push.Scopes), scope.describe, (*keyForm).readScope).unique(), "The scopes of the key. The caller must have all of them.", nil),
	row("expires_at", optional, moment(func(f *keyForm, t time.Time) { f.expires = t }), "The end of the key, no later than the end of the caller's key. Default: the end of the caller's key, or never.", timeExample),
	row("name", optional, text(func(f *keyForm, s string) { f.name = s }, 0, 100), "The name in lists. Default: none.", "back office"),
}}

// scope is one of an API key's scopes.
var scope = oneOf(func(to *string, s string) { *to = s }, push.Scopes...)

func (f *keyForm) readScope(r *reader, i int, name string, errs *fieldErrors) {
	var s string
	raw := r.value()
	if r.err != nil {
		return
	}
	if wrong := scope.readJSON(raw, &s, "", nil); wrong != "" {
		errs.addJSON(item(name, i), wrong, raw)
	} else if slices.Contains(f.scopes, s) {
		errs.addJSON(name, "must not name a scope twice", raw)
	}
	f.scopes = append(f.scopes, s)
}

// check refuses a key that would never open anything.
func (f *keyForm) check(_ []byte, errs *fieldErrors) {
	if !f.expires.IsZero() && !f.expires.After(f.now) && !errs.has("expires_at") {
		errs.add("expires_at", "must lie in the future", stamp(f.expires))
	}
}

func (h *keys) createKey(c *call) error {
	f := keyForm{now: c.now()}
	if err := keyFields.readBody(c, &f, &c.bad); err != nil {
		return err
	}
	k, secret, err := h.ring.CreateKey(c.r.Context(), push.NewKey{
		Tenant: c.caller.Tenant, By: &c.caller, Name: f.name, Scopes: f.scopes, ExpiresAt: f.expires, Most: h.most,
	})
	if err != nil {
		return keyError(err)
	}
	return h.answerKey(c, http.StatusCreated, k, secret)
}

// keyError is the answer to a change of an API key that was not made.
func keyError(err error) error {
	if errors.Is(err, push.ErrCallerOver) {
		return denied(push.ErrCallerOver.Error())
	}
	if end, ok := errors.AsType[*push.EndError](err); ok {
		var wrong invalid.FieldErrors
		wrong.Add("expires_at", stamp(end.Wanted), "must not be later than the end of the key of the request, %s", end.Latest)
		return wrong
	}
	return noSuch("key", err)
}

// answerKey answers with a new key, and its secret this once.
func (h *keys) answerKey(c *call, status int, k push.APIKey, secret string) error {
	v := keyViewOf(k)
	v.Secret = secret
	c.header("Location", keysPath+"/"+v.ID)
	return c.answer(status, v)
}

var keysParams = pages[pageParams]()

// listKeys answers with a page of the tenant's API keys.
func (h *keys) listKeys(c *call) error {
	return list(c, &keysParams, func(q pageParams, after push.KeyPosition) ([]push.APIKey, *push.KeyPosition, error) {
		page, err := h.ring.KeyPage(c.r.Context(), c.caller.Tenant, after, q.size)
		return page.Keys, page.Next, err
	}, func(all []push.APIKey, next string) any { return keysView{viewsOf(all, keyViewOf), next} })
}

func (h *keys) getKey(c *call) error {
	k, err := h.ring.APIKey(c.r.Context(), c.caller.Tenant, c.id)
	if err != nil {
		return noSuch("key", err)
	}
	return c.answer(http.StatusOK, keyViewOf(k))
}

// rotateFields is the body of a rotation.
var rotateFields = table[time.Duration]{schemaName: "KeyRotation", fields: []field[time.Duration]{
	row("overlap", optional, span(func(to *time.Duration, d time.Duration) { *to = d }, 0, 8760*time.Hour).or("24h"), "How long the old key stays valid, unless it ends earlier; 0s: it ends immediately.", "24h"),
}}

func (h *keys) rotateKey(c *call) error {
	overlap := 24 * time.Hour
	if c.r.ContentLength == 0 {
		if err := c.bad.err(); err != nil {
			return err
		}
	} else if err := rotateFields.readBody(c, &overlap, &c.bad); err != nil {
		return err
	}
	k, secret, err := h.ring.RotateKey(c.r.Context(), &c.caller, c.id, overlap, 0)
	if err != nil {
		return keyError(err)
	}
	return h.answerKey(c, http.StatusCreated, k, secret)
}

var revokeParams = table[bool]{fields: []field[bool]{
	row("self", optional, boolean(func(self *bool, is bool) { *self = is }).or("false"), "Allows the caller's key to revoke itself.", nil),
}}

func (h *keys) revokeKey(c *call) error {
	var self bool
	revokeParams.readQuery(c.r, &self, &c.bad)
	if err := c.noBody(&c.bad); err != nil {
		return err
	}
	if c.id == c.caller.Key && !self {
		return &refusal{kind: ownKey, detail: "this is the key of the request itself; to revoke it, add ?self=true"}
	}
	if _, err := h.ring.RevokeKey(c.r.Context(), &c.caller, c.id); err != nil {
		return noSuch("key", err)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
