package accounts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/user"
)

func (h *users) routes(s *rest.Spec) []rest.Operation {
	ada := userViewOf(user.User{ID: uuid.MustParse(rest.ExampleID), Email: "ada@example.com", Name: "Ada Lovelace", Role: user.Editor, HasPassword: true, CreatedAt: rest.ExampleTime(0), LastSignInAt: new(rest.ExampleTime(time.Hour))})
	made := ada
	made.HasPassword, made.LastSignInAt, made.LinkExpiresAt = false, nil, rest.MaybeTime(rest.ExampleTime(24*time.Hour))
	made.Link = "https://sendquota.example.com" + user.LinkPath + "C2FVsBQIhrscChlQIMVb5sSYspob7oD5NdAxrpTTdk0"
	const onePath = UsersPath + "/{id}"
	located := func(all map[string]*huma.Response) {
		rest.AddHeader(all["201"], "Location", "The path of the new user.")
	}
	const (
		giving = "The caller must have every scope of the new role."
		having = "The caller must have every scope of the user's current role."
	)
	ofRole := rest.Need{When: "all scopes of the role"}
	return []rest.Operation{{
		ID: "create-user", Method: http.MethodPost, Path: UsersPath, Tag: TagUsers, Scope: push.ScopeUsersWrite, Also: ofRole, Serve: h.createUser,
		Summary: "Create a user of the console",
		Description: "The answer has a link that lets the user set a password within 24 hours. It is shown only once. " + giving + "\n\n" +
			"There is no Idempotency-Key. If the answer was lost, the list shows the user, and you can create another link.",
		Body:   userFields.Body(s, json.RawMessage(`{"email": "ada@example.com", "name": "Ada Lovelace", "role": "editor"}`)),
		Status: http.StatusCreated, Answer: "The user, with the link.", Example: made, Problems: []rest.Kind{TooManyUsers, EmailTaken}, Finish: located,
	}, {
		ID: "list-users", Method: http.MethodGet, Path: UsersPath, Tag: TagUsers, Scope: push.ScopeUsersRead, Serve: h.listUsers,
		Summary: "List the users of the console", Description: "Lists the users of the tenant, the oldest first.",
		Query: &usersParams, Status: http.StatusOK, Answer: "A page of users.", Example: usersView{Users: []userView{ada}},
	}, {
		ID: "get-user", Method: http.MethodGet, Path: onePath, Tag: TagUsers, Scope: push.ScopeUsersRead, Serve: h.getUser,
		Summary: "Read a user", Description: "Returns the user. Passwords and links are never shown.",
		Status: http.StatusOK, Answer: "The user.", Example: ada, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "change-user", Method: http.MethodPatch, Path: onePath, Tag: TagUsers, Scope: push.ScopeUsersWrite, Also: ofRole, Serve: h.changeUser,
		Summary: "Change a user",
		Description: "Members that are not sent stay unchanged. A new role applies immediately, also in open sessions; a disabled user is signed out everywhere. A new role invalidates an unused link. " +
			"A role that the creator of the password's link could not have given also ends the password and the sessions: create another link then. " + having + " " + giving + " " +
			"The last admin can be neither demoted nor disabled.",
		Body:   userChanges.Body(s, map[string]any{"role": "sender"}),
		Status: http.StatusOK, Answer: "The user.", Example: ada, Problems: []rest.Kind{rest.NotFound, LastAdmin},
	}, {
		ID: "delete-user", Method: http.MethodDelete, Path: onePath, Tag: TagUsers, Scope: push.ScopeUsersWrite, Also: ofRole, Serve: h.deleteUser,
		Summary: "Delete a user", Description: "The user is signed out everywhere. " + having + " The last admin cannot be deleted.",
		Status: http.StatusNoContent, Answer: "The user is deleted.", Problems: []rest.Kind{rest.NotFound, LastAdmin},
	}, {
		ID: "link-user", Method: http.MethodPost, Path: onePath + "/link", Tag: TagUsers, Scope: push.ScopeUsersWrite, Also: ofRole, Serve: h.linkUser,
		Summary: "Create a link to set a password",
		Description: "The answer has the link, which is shown only once. It can be used once, within 24 hours, and replaces the previous link. The password and the sessions of the user stay valid until it is used. " +
			"A person with the link controls the account. " + having + " A user of the OIDC provider has no links, unless the operator allows them (`console.external_passwords`).",
		Status: http.StatusCreated, Answer: "The user, with the link.", Example: made, Problems: []rest.Kind{rest.NotFound, UserDisabled, UserExternal},
	}}
}

// sessionRoutes returns the operations on the sessions of users.
func (h *users) sessionRoutes(*rest.Spec) []rest.Operation {
	const sessionsPath = UsersPath + "/{id}/sessions"
	const others = "Users can %s their own sessions; the sessions of others need the scope users:write, and every scope of the user's current role."
	ofOthers := rest.Need{Scope: push.ScopeUsersWrite, When: "for the sessions of others, with all scopes of their role"}
	return []rest.Operation{{
		ID: "list-sessions", Method: http.MethodGet, Path: sessionsPath, Tag: TagUsers, Scope: push.ScopeUsersRead, Also: ofOthers, Serve: h.listSessions,
		Summary: "List the sessions of a user", Description: fmt.Sprintf(others, "see"),
		Status: http.StatusOK, Answer: "The sessions.", Example: sessionsView{[]sessionView{sessionViewOf(user.Session{
			ID: uuid.MustParse(rest.ExampleID), CreatedAt: rest.ExampleTime(0), LastSeenAt: rest.ExampleTime(time.Hour), ExpiresAt: rest.ExampleTime(3 * time.Hour), Address: "192.0.2.7", UserAgent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
		})}}, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "end-sessions", Method: http.MethodDelete, Path: sessionsPath, Tag: TagUsers, Scope: push.ScopeUsersRead, Also: ofOthers, Serve: h.endSessions,
		Summary: "Sign a user out everywhere", Description: fmt.Sprintf(others, "end"),
		Status: http.StatusOK, Answer: "The sessions have ended.", Example: endedView{2}, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "end-session", Method: http.MethodDelete, Path: sessionsPath + "/{session}", Tag: TagUsers, Scope: push.ScopeUsersRead, Also: ofOthers, Serve: h.endSession,
		Summary: "Sign a user out in one browser", Description: fmt.Sprintf(others, "end"),
		Status: http.StatusNoContent, Answer: "The session has ended.", Problems: []rest.Kind{rest.NotFound},
	}}
}
