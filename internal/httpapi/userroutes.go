package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

func (h *users) routes(s *spec) []operation {
	ada := userViewOf(user.User{ID: uuid.MustParse(exampleID), Email: "ada@example.com", Name: "Ada Lovelace", Role: user.Editor, HasPassword: true, CreatedAt: exampleTime(0), LastSignInAt: new(exampleTime(time.Hour))})
	made := ada
	made.HasPassword, made.LastSignInAt, made.LinkExpiresAt = false, nil, maybe(exampleTime(24*time.Hour))
	made.Link = "https://sendquota.example.com" + user.LinkPath + "C2FVsBQIhrscChlQIMVb5sSYspob7oD5NdAxrpTTdk0"
	const onePath, sessionsPath = usersPath + "/{id}", usersPath + "/{id}/sessions"
	located := func(all map[string]*huma.Response) { addHeader(all["201"], "Location", "The path of the new user.") }
	const (
		giving = "The caller must have every scope of the new role."
		having = "The caller must have every scope of the user's current role."
		others = "Users can %s their own sessions; the sessions of others need the scope users:write, and every scope of the user's current role."
	)
	ofRole, ofOthers := need{when: "all scopes of the role"}, need{scope: push.ScopeUsersWrite, when: "for the sessions of others, with all scopes of their role"}
	return []operation{{
		id: "create-user", method: http.MethodPost, path: usersPath, tag: tagUsers, scope: push.ScopeUsersWrite, also: ofRole, serve: h.createUser,
		summary: "Create a user of the console",
		description: "The answer has a link that lets the user set a password within 24 hours. It is shown only once. " + giving + "\n\n" +
			"There is no Idempotency-Key. If the answer was lost, the list shows the user, and you can create another link.",
		body:   userFields.body(s, json.RawMessage(`{"email": "ada@example.com", "name": "Ada Lovelace", "role": "editor"}`)),
		status: http.StatusCreated, answer: "The user, with the link.", example: made, problems: []kind{tooManyUsers, emailTaken}, finish: located,
	}, {
		id: "list-users", method: http.MethodGet, path: usersPath, tag: tagUsers, scope: push.ScopeUsersRead, serve: h.listUsers,
		summary: "List the users of the console", description: "Lists the users of the tenant, the oldest first.",
		query: &usersParams, status: http.StatusOK, answer: "A page of users.", example: usersView{Users: []userView{ada}},
	}, {
		id: "get-user", method: http.MethodGet, path: onePath, tag: tagUsers, scope: push.ScopeUsersRead, serve: h.getUser,
		summary: "Read a user", description: "Returns the user. Passwords and links are never shown.",
		status: http.StatusOK, answer: "The user.", example: ada, problems: []kind{notFound},
	}, {
		id: "change-user", method: http.MethodPatch, path: onePath, tag: tagUsers, scope: push.ScopeUsersWrite, also: ofRole, serve: h.changeUser,
		summary: "Change a user",
		description: "Members that are not sent stay unchanged. A new role applies immediately, also in open sessions; a disabled user is signed out everywhere. A new role invalidates an unused link. " +
			"A role that the creator of the password's link could not have given also ends the password and the sessions: create another link then. " + having + " " + giving + " " +
			"The last admin can be neither demoted nor disabled.",
		body:   userChanges.body(s, map[string]any{"role": "sender"}),
		status: http.StatusOK, answer: "The user.", example: ada, problems: []kind{notFound, lastAdmin},
	}, {
		id: "delete-user", method: http.MethodDelete, path: onePath, tag: tagUsers, scope: push.ScopeUsersWrite, also: ofRole, serve: h.deleteUser,
		summary: "Delete a user", description: "The user is signed out everywhere. " + having + " The last admin cannot be deleted.",
		status: http.StatusNoContent, answer: "The user is deleted.", problems: []kind{notFound, lastAdmin},
	}, {
		id: "link-user", method: http.MethodPost, path: onePath + "/link", tag: tagUsers, scope: push.ScopeUsersWrite, also: ofRole, serve: h.linkUser,
		summary: "Create a link to set a password",
		description: "The answer has the link, which is shown only once. It can be used once, within 24 hours, and replaces the previous link. The password and the sessions of the user stay valid until it is used. " +
			"A person with the link controls the account. " + having + " A user of the OIDC provider has no links, unless the operator allows them (`console.external_passwords`).",
		status: http.StatusCreated, answer: "The user, with the link.", example: made, problems: []kind{notFound, userDisabled, userExternal},
	}, {
		id: "list-sessions", method: http.MethodGet, path: sessionsPath, tag: tagUsers, scope: push.ScopeUsersRead, also: ofOthers, serve: h.listSessions,
		summary: "List the sessions of a user", description: fmt.Sprintf(others, "see"),
		status: http.StatusOK, answer: "The sessions.", example: sessionsView{[]sessionView{sessionViewOf(user.Session{
			ID: uuid.MustParse(exampleID), CreatedAt: exampleTime(0), LastSeenAt: exampleTime(time.Hour), ExpiresAt: exampleTime(3 * time.Hour), Address: "192.0.2.7", UserAgent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
		})}}, problems: []kind{notFound},
	}, {
		id: "end-sessions", method: http.MethodDelete, path: sessionsPath, tag: tagUsers, scope: push.ScopeUsersRead, also: ofOthers, serve: h.endSessions,
		summary: "Sign a user out everywhere", description: fmt.Sprintf(others, "end"),
		status: http.StatusOK, answer: "The sessions have ended.", example: endedView{2}, problems: []kind{notFound},
	}, {
		id: "end-session", method: http.MethodDelete, path: sessionsPath + "/{session}", tag: tagUsers, scope: push.ScopeUsersRead, also: ofOthers, serve: h.endSession,
		summary: "Sign a user out in one browser", description: fmt.Sprintf(others, "end"),
		status: http.StatusNoContent, answer: "The session has ended.", problems: []kind{notFound},
	}}
}
