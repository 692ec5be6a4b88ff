package httpapi

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/user"
)

// userStories are the operations on users with an entry in the audit log.
func userStories() map[string]logStory {
	made := func(b *bundle, n int) string {
		b.exec(`DELETE FROM users`) // there may be few
		return b.person(fmt.Sprintf("user-%d@example.com", n), user.Viewer).at(b.t, "id").(string)
	}
	signedIn := func(b *bundle, n int) (id, session string) {
		id = made(b, n)
		v, err := b.store.BeginSession(b.t.Context(), b.tenant, user.NewSession{Hash: [32]byte{byte(n)}, User: uuid.MustParse(id), ExpiresAt: time.Now().Add(time.Hour)})
		if err != nil {
			b.t.Fatal(err)
		}
		return id, v.ID.String()
	}
	return map[string]logStory{
		"create-user": {auditlog.UserCreate, func(b *bundle, n int) logRequest {
			b.exec(`DELETE FROM users`)
			return request("POST", "/v1/users", fmt.Sprintf(`{"email":"new-%d@example.com","role":"viewer"}`, n))
		}},
		"change-user": {auditlog.UserChange, func(b *bundle, n int) logRequest {
			id := made(b, n)
			return request("PATCH", "/v1/users/"+id, `{"role":"sender"}`).about(id)
		}},
		"delete-user": {auditlog.UserDelete, func(b *bundle, n int) logRequest {
			id := made(b, n)
			return request("DELETE", "/v1/users/"+id, "").about(id)
		}},
		"link-user": {auditlog.UserLink, func(b *bundle, n int) logRequest {
			id := made(b, n)
			return request("POST", "/v1/users/"+id+"/link", "").about(id)
		}},
		"end-session": {auditlog.UserEndSessions, func(b *bundle, n int) logRequest {
			id, session := signedIn(b, n)
			return request("DELETE", "/v1/users/"+id+"/sessions/"+session, "").about(id)
		}},
		"end-sessions": {auditlog.UserEndSessions, func(b *bundle, n int) logRequest {
			id, _ := signedIn(b, n)
			return request("DELETE", "/v1/users/"+id+"/sessions", "").about(id)
		}},
	}
}
