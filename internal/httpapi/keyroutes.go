package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func (a *api) keyRoutes(s *spec) []operation {
	key := keyViewOf(push.APIKey{
		ID: uuid.MustParse(exampleID), Name: "back office", Scopes: []string{push.ScopeRead, push.ScopeRecordsRead}, State: push.KeyLive,
		CreatedAt: exampleTime(0), ExpiresAt: new(exampleTime(365 * 24 * time.Hour)), LastUsedAt: new(exampleTime(time.Hour)),
	})
	made := key
	made.LastUsedAt, made.Secret = nil, "sq_C2FVsBQIhrscChlQIMVb5sSYspob7oD5NdAxrpTTdk0"
	located := func(all map[string]*huma.Response) { addHeader(all["201"], "Location", "The path of the new key.") }
	ofKey := need{when: "all scopes of the key"}
	return []operation{{
		id: "create-key", method: http.MethodPost, path: keysPath, tag: tagKeys, scope: push.ScopeKeysWrite, also: ofKey, serve: a.createKey,
		summary: "Create an API key",
		description: "The answer has the key itself, as secret. It is shown only once, and only its hash is kept. A key gives others no scope that it does not have itself, and no later end than its own.\n\n" +
			"There is no Idempotency-Key: an answer that is repeated would have to be kept. If the answer was lost, revoke the key that the list shows, and make another one.",
		body:   keyFields.body(s, json.RawMessage(`{"name": "back office", "scopes": ["pushes:read", "records:read"], "expires_at": "2027-12-01T08:00:00Z"}`)),
		status: http.StatusCreated, answer: "The key, with its secret.", example: made, problems: []kind{tooManyKeys}, finish: located,
	}, {
		id: "list-keys", method: http.MethodGet, path: keysPath, tag: tagKeys, scope: push.ScopeKeysRead, serve: a.listKeys,
		summary: "List API keys", description: "All of the tenant, the oldest first, and the last thousand of those that have ended. Secrets are never shown.",
		query: &keysParams, status: http.StatusOK, answer: "A page of keys.", example: keysView{Keys: []keyView{key}},
	}, {
		id: "get-key", method: http.MethodGet, path: keysPath + "/{id}", tag: tagKeys, scope: push.ScopeKeysRead, serve: a.getKey,
		summary: "Read an API key", description: "Answers with what is known of the key. Its secret is never shown.",
		status: http.StatusOK, answer: "The key.", example: key, problems: []kind{notFound},
	}, {
		id: "rotate-key", method: http.MethodPost, path: keysPath + "/{id}/rotate", tag: tagKeys, scope: push.ScopeKeysWrite, also: ofKey, serve: a.rotateKey,
		summary: "Replace an API key",
		description: "Makes another key with the same name and scopes, which lives as long as the old one was made for, but no longer than the key of the request, and lets the old one live for the overlap. " +
			"The caller must have all of these scopes. While both live, neither can be rotated again.\n\n" +
			"There is no Idempotency-Key. If the answer was lost, successor names the key that was made: revoke that, and rotate again.",
		body:   rotateBody(s),
		status: http.StatusCreated, answer: "The new key, with its secret.", example: made, problems: []kind{notFound, notRotatable}, finish: located,
	}, {
		id: "revoke-key", method: http.MethodDelete, path: keysPath + "/{id}", tag: tagKeys, scope: push.ScopeKeysWrite, also: ofKey, serve: a.revokeKey,
		summary: "Revoke an API key",
		description: "The key is refused everywhere within a second. The caller must have all of its scopes. Revoking again answers the same. " +
			"The key of the request is revoked only with self=true. Keys that the key has made stay: the audit log names them.",
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
