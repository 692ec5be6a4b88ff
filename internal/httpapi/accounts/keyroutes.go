package accounts

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

func (h *keys) routes(s *rest.Spec) []rest.Operation {
	key := keyViewOf(apikey.Key{
		ID: uuid.MustParse(rest.ExampleID), Name: "back office", Scopes: []string{push.ScopeRead, push.ScopeRecordsRead}, State: apikey.Live,
		CreatedAt: rest.ExampleTime(0), ExpiresAt: new(rest.ExampleTime(365 * 24 * time.Hour)), LastUsedAt: new(rest.ExampleTime(time.Hour)),
	})
	made := key
	made.LastUsedAt, made.Secret = nil, "sq_C2FVsBQIhrscChlQIMVb5sSYspob7oD5NdAxrpTTdk0"
	located := func(all map[string]*huma.Response) {
		rest.AddHeader(all["201"], "Location", "The path of the new key.")
	}
	ofKey := rest.Need{When: "all scopes of the key"}
	return []rest.Operation{{
		ID: "create-key", Method: http.MethodPost, Path: KeysPath, Tag: TagKeys, Scope: push.ScopeKeysWrite, Also: ofKey, Serve: h.createKey,
		Summary: "Create an API key",
		Description: "The answer has the key itself in secret. It is shown only once, and only its hash is stored. The new key can have only scopes that the caller's key has, and cannot end later than it.\n\n" +
			"There is no Idempotency-Key, because repeating the answer would need a stored secret. If the answer was lost, revoke the key that the list shows, and create another one.",
		Body:   keyFields.Body(s, json.RawMessage(`{"name": "back office", "scopes": ["pushes:read", "records:read"], "expires_at": "2027-12-01T08:00:00Z"}`)),
		Status: http.StatusCreated, Answer: "The key, with its secret.", Example: made, Problems: []rest.Kind{TooManyKeys}, Finish: located,
	}, {
		ID: "list-keys", Method: http.MethodGet, Path: KeysPath, Tag: TagKeys, Scope: push.ScopeKeysRead, Serve: h.listKeys,
		Summary: "List API keys", Description: "Lists the keys of the tenant, the oldest first, including the last thousand that have ended. Secrets are never shown.",
		Query: &keysParams, Status: http.StatusOK, Answer: "A page of keys.", Example: keysView{Keys: []keyView{key}},
	}, {
		ID: "get-key", Method: http.MethodGet, Path: KeysPath + "/{id}", Tag: TagKeys, Scope: push.ScopeKeysRead, Serve: h.getKey,
		Summary: "Read an API key", Description: "Returns the key without its secret.",
		Status: http.StatusOK, Answer: "The key.", Example: key, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "rotate-key", Method: http.MethodPost, Path: KeysPath + "/{id}/rotate", Tag: TagKeys, Scope: push.ScopeKeysWrite, Also: ofKey, Serve: h.rotateKey,
		Summary: "Replace an API key",
		Description: "Creates a key with the same name and scopes. It has the lifetime that the old one was created with, but cannot end later than the caller's key. The old key stays valid for the overlap. " +
			"The caller must have all of these scopes. While both keys are live, neither can be rotated again.\n\n" +
			"There is no Idempotency-Key. If the answer was lost, successor names the new key: revoke it, and rotate again.",
		Body:   rotateBody(s),
		Status: http.StatusCreated, Answer: "The new key, with its secret.", Example: made, Problems: []rest.Kind{rest.NotFound, NotRotatable}, Finish: located,
	}, {
		ID: "revoke-key", Method: http.MethodDelete, Path: KeysPath + "/{id}", Tag: TagKeys, Scope: push.ScopeKeysWrite, Also: ofKey, Serve: h.revokeKey,
		Summary: "Revoke an API key",
		Description: "The key is rejected everywhere within a second. The caller must have all of its scopes. Revoking again returns the same. " +
			"The caller's own key is revoked only with self=true. Keys that the key has created stay valid: the audit log names them.",
		Query:  &revokeParams,
		Status: http.StatusNoContent, Answer: "The key is revoked.", Problems: []rest.Kind{rest.NotFound, OwnKey},
	}}
}

// rotateBody documents an optional body.
func rotateBody(s *rest.Spec) *huma.RequestBody {
	body := rotateFields.Body(s, map[string]any{"overlap": "24h"})
	body.Required = false
	return body
}
