package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func (h *keys) routes(s *spec) []operation {
	key := keyViewOf(push.APIKey{
		ID: uuid.MustParse(exampleID), Name: "back office", Scopes: []string{push.ScopeRead, push.ScopeRecordsRead}, State: push.KeyLive,
		CreatedAt: exampleTime(0), ExpiresAt: new(exampleTime(365 * 24 * time.Hour)), LastUsedAt: new(exampleTime(time.Hour)),
	})
	made := key
	made.LastUsedAt, made.Secret = nil, "sq_C2FVsBQIhrscChlQIMVb5sSYspob7oD5NdAxrpTTdk0"
	located := func(all map[string]*huma.Response) { addHeader(all["201"], "Location", "The path of the new key.") }
	ofKey := need{when: "all scopes of the key"}
	return []operation{{
		id: "create-key", method: http.MethodPost, path: keysPath, tag: tagKeys, scope: push.ScopeKeysWrite, also: ofKey, serve: h.createKey,
		summary: "Create an API key",
		description: "The answer has the key itself in secret. It is shown only once, and only its hash is stored. The new key can have only scopes that the caller's key has, and cannot end later than it.\n\n" +
			"There is no Idempotency-Key, because repeating the answer would need a stored secret. If the answer was lost, revoke the key that the list shows, and create another one.",
		body:   keyFields.body(s, json.RawMessage(`{"name": "back office", "scopes": ["pushes:read", "records:read"], "expires_at": "2027-12-01T08:00:00Z"}`)),
		status: http.StatusCreated, answer: "The key, with its secret.", example: made, problems: []kind{tooManyKeys}, finish: located,
	}, {
		id: "list-keys", method: http.MethodGet, path: keysPath, tag: tagKeys, scope: push.ScopeKeysRead, serve: h.listKeys,
		summary: "List API keys", description: "Lists the keys of the tenant, the oldest first, including the last thousand that have ended. Secrets are never shown.",
		query: &keysParams, status: http.StatusOK, answer: "A page of keys.", example: keysView{Keys: []keyView{key}},
	}, {
		id: "get-key", method: http.MethodGet, path: keysPath + "/{id}", tag: tagKeys, scope: push.ScopeKeysRead, serve: h.getKey,
		summary: "Read an API key", description: "Returns the key without its secret.",
		status: http.StatusOK, answer: "The key.", example: key, problems: []kind{notFound},
	}, {
		id: "rotate-key", method: http.MethodPost, path: keysPath + "/{id}/rotate", tag: tagKeys, scope: push.ScopeKeysWrite, also: ofKey, serve: h.rotateKey,
		summary: "Replace an API key",
		description: "Creates a key with the same name and scopes. It has the lifetime that the old one was created with, but cannot end later than the caller's key. The old key stays valid for the overlap. " +
			"The caller must have all of these scopes. While both keys are live, neither can be rotated again.\n\n" +
			"There is no Idempotency-Key. If the answer was lost, successor names the new key: revoke it, and rotate again.",
		body:   rotateBody(s),
		status: http.StatusCreated, answer: "The new key, with its secret.", example: made, problems: []kind{notFound, notRotatable}, finish: located,
	}, {
		id: "revoke-key", method: http.MethodDelete, path: keysPath + "/{id}", tag: tagKeys, scope: push.ScopeKeysWrite, also: ofKey, serve: h.revokeKey,
		summary: "Revoke an API key",
		description: "The key is rejected everywhere within a second. The caller must have all of its scopes. Revoking again returns the same. " +
			"The caller's own key is revoked only with self=true. Keys that the key has created stay valid: the audit log names them.",
		query:  &revokeParams,
		status: http.StatusNoContent, answer: "The key is revoked.", problems: []kind{notFound, ownKey},
	}}
}

// rotateBody need not be there.
func rotateBody(s *spec) *huma.RequestBody {
	body := rotateFields.body(s, map[string]any{"overlap": "24h"})
	body.Required = false
	return body
}
