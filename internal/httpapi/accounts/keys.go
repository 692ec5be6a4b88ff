package accounts

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// KeysPath is the path of the API keys.
const KeysPath = "/v1/keys"

// Keys stores API keys. Another tenant's key is [push.ErrNotFound].
type Keys interface {
	CreateKey(ctx context.Context, n apikey.NewKey) (k apikey.Key, secret string, err error)
	APIKey(ctx context.Context, tenant, id uuid.UUID) (apikey.Key, error)
	KeyPage(ctx context.Context, tenant uuid.UUID, after apikey.Position, limit int) (apikey.Page, error)
	RotateKey(ctx context.Context, by *push.Caller, old uuid.UUID, overlap, lifetime time.Duration) (k apikey.Key, secret string, err error)
	RevokeKey(ctx context.Context, by *push.Caller, id uuid.UUID) (before bool, err error)
}

// keyView is an API key as the API shows it.
type keyView struct {
	ID         string       `json:"id" format:"uuid"`
	Name       string       `json:"name" doc:"Empty: no name."`
	State      apikey.State `json:"state" enum:"live,expired,revoked" doc:"Only a live key is accepted."`
	Scopes     []string     `json:"scopes"`
	CreatedAt  string       `json:"created_at" format:"date-time"`
	ExpiresAt  *string      `json:"expires_at" format:"date-time" nullable:"true" doc:"null: never."`
	LastUsedAt *string      `json:"last_used_at" format:"date-time" nullable:"true" doc:"Accurate to about a minute; null: never."`
	RevokedAt  *string      `json:"revoked_at" format:"date-time" nullable:"true"`
	Successor  *string      `json:"successor" format:"uuid" nullable:"true" doc:"The key that the last rotation created."`
	Secret     string       `json:"secret,omitempty" doc:"The key itself, for Authorization: Bearer. Returned only when a key is created or rotated: store it."`
}

type keysView struct {
	Keys          []keyView `json:"keys" doc:"The oldest first."`
	NextPageToken string    `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

// keyViewOf shows an API key, without its secret.
func keyViewOf(k apikey.Key) keyView {
	v := keyView{
		ID: k.ID.String(), Name: k.Name, State: k.State, Scopes: append([]string{}, k.Scopes...), CreatedAt: rest.Stamp(k.CreatedAt),
		ExpiresAt: rest.MaybePast(k.ExpiresAt), LastUsedAt: rest.MaybePast(k.LastUsedAt), RevokedAt: rest.MaybePast(k.RevokedAt),
	}
	if k.Successor != uuid.Nil {
		v.Successor = rest.MaybeText(k.Successor.String())
	}
	return v
}

// keyForm is an API key in a request.
type keyForm struct {
	name    string
	scopes  []string
	expires time.Time
	now     time.Time
}

var keyFields = rest.Table[keyForm]{SchemaName: "NewKey", Refuse: rest.Unchosen, Check: (*keyForm).check, Fields: []rest.Field[keyForm]{
	rest.Row("scopes", rest.Required, rest.Array(1, len(push.Scopes), scope.Describe, (*keyForm).readScope).Unique(), "The scopes of the key. The caller must have all of them.", nil),
	rest.Row("expires_at", rest.Optional, rest.Moment(func(f *keyForm, t time.Time) { f.expires = t }), "The end of the key, no later than the end of the caller's key. Default: the end of the caller's key, or never.", rest.TimeExample),
	rest.Row("name", rest.Optional, rest.Text(func(f *keyForm, s string) { f.name = s }, 0, 100), "The name in lists. Default: none.", "back office"),
}}

// scope is one of an API key's scopes.
var scope = rest.OneOf(func(to *string, s string) { *to = s }, push.Scopes...)

func (f *keyForm) readScope(r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
	var s string
	raw := r.Value()
	if r.Err != nil {
		return
	}
	if wrong := scope.ReadJSON(raw, &s, "", nil); wrong != "" {
		errs.AddJSON(rest.Item(name, i), wrong, raw)
	} else if slices.Contains(f.scopes, s) {
		errs.AddJSON(name, "must not name a scope twice", raw)
	}
	f.scopes = append(f.scopes, s)
}

// check rejects a key that has ended already.
func (f *keyForm) check(errs *rest.FieldErrors) {
	if !f.expires.IsZero() && !f.expires.After(f.now) && !errs.Has("expires_at") {
		errs.Add("expires_at", "must lie in the future", rest.Stamp(f.expires))
	}
}

func (h *keys) createKey(c *rest.Call) error {
	f := keyForm{now: c.Now()}
	if err := keyFields.ReadBody(c, &f, &c.Errors); err != nil {
		return err
	}
	k, secret, err := h.ring.CreateKey(c.Request.Context(), apikey.NewKey{
		Tenant: c.Caller.Tenant, By: &c.Caller, Name: f.name, Scopes: f.scopes, ExpiresAt: f.expires, Most: h.most,
	})
	if err != nil {
		return keyError(err)
	}
	return h.answerKey(c, http.StatusCreated, k, secret)
}

// keyError returns the answer to a failed change of an API key.
func keyError(err error) error {
	if errors.Is(err, apikey.ErrCallerOver) {
		return rest.Denied(apikey.ErrCallerOver.Error())
	}
	if end, ok := errors.AsType[*apikey.EndError](err); ok {
		var wrong invalid.FieldErrors
		wrong.Add("expires_at", rest.Stamp(end.Wanted), "must not be later than the end of the key of the request, %s", end.Latest)
		return wrong
	}
	return rest.NoSuch("key", err)
}

// answerKey answers with a new key and its secret, which is shown only once.
func (h *keys) answerKey(c *rest.Call, status int, k apikey.Key, secret string) error {
	v := keyViewOf(k)
	v.Secret = secret
	c.Header("Location", KeysPath+"/"+v.ID)
	return c.Answer(status, v)
}

var keysParams = rest.Pages[rest.PageParams]()

// listKeys answers with a page of the tenant's API keys.
func (h *keys) listKeys(c *rest.Call) error {
	return rest.List(c, &keysParams, func(q rest.PageParams, after apikey.Position) ([]apikey.Key, *apikey.Position, error) {
		page, err := h.ring.KeyPage(c.Request.Context(), c.Caller.Tenant, after, q.Size)
		return page.Keys, page.Next, err
	}, func(all []apikey.Key, next string) any { return keysView{rest.ViewsOf(all, keyViewOf), next} })
}

func (h *keys) getKey(c *rest.Call) error {
	k, err := h.ring.APIKey(c.Request.Context(), c.Caller.Tenant, c.ID)
	if err != nil {
		return rest.NoSuch("key", err)
	}
	return c.Answer(http.StatusOK, keyViewOf(k))
}

// rotateFields is the body of a rotation.
var rotateFields = rest.Table[time.Duration]{SchemaName: "KeyRotation", Fields: []rest.Field[time.Duration]{
	rest.Row("overlap", rest.Optional, rest.Span(func(to *time.Duration, d time.Duration) { *to = d }, 0, 8760*time.Hour).Or("24h"), "How long the old key stays valid, unless it ends earlier; 0s: it ends immediately.", "24h"),
}}

func (h *keys) rotateKey(c *rest.Call) error {
	overlap := 24 * time.Hour
	if c.Request.ContentLength == 0 {
		if err := c.Errors.Err(); err != nil {
			return err
		}
	} else if err := rotateFields.ReadBody(c, &overlap, &c.Errors); err != nil {
		return err
	}
	k, secret, err := h.ring.RotateKey(c.Request.Context(), &c.Caller, c.ID, overlap, 0)
	if err != nil {
		return keyError(err)
	}
	return h.answerKey(c, http.StatusCreated, k, secret)
}

var revokeParams = rest.Table[bool]{Fields: []rest.Field[bool]{
	rest.Row("self", rest.Optional, rest.Boolean(func(self *bool, is bool) { *self = is }).Or("false"), "Allows the caller's key to revoke itself.", nil),
}}

func (h *keys) revokeKey(c *rest.Call) error {
	var self bool
	revokeParams.ReadQuery(c.Request, &self, &c.Errors)
	if err := c.RejectBody(&c.Errors); err != nil {
		return err
	}
	if c.ID == c.Caller.Key && !self {
		return &rest.Refusal{Kind: OwnKey, Detail: "this is the key of the request itself; to revoke it, add ?self=true"}
	}
	if _, err := h.ring.RevokeKey(c.Request.Context(), &c.Caller, c.ID); err != nil {
		return rest.NoSuch("key", err)
	}
	c.Writer.WriteHeader(http.StatusNoContent)
	return nil
}
