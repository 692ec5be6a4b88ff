package clienttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestClient_Users makes, changes, links and removes a user.
func TestClient_Users(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient()
	ada, err := c.Users.Create(ctx, client.NewUser{Email: "ada@client.example", Name: "Ada", Role: client.NewUserRoleEditor})
	if err != nil || !strings.Contains(ada.Link, "/console/set-password/") || ada.LinkExpiresAt.IsZero() || ada.Role != client.UserRoleEditor {
		t.Fatalf("%+v, %v", ada, err)
	}
	role := client.UserChangeRoleSender
	if got, err := c.Users.Change(ctx, ada.ID, client.UserChange{Role: &role}); err != nil || got.Role != client.UserRoleSender || got.Name != "Ada" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Users.Link(ctx, ada.ID); err != nil || got.Link == "" || got.Link == ada.Link {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Users.Get(ctx, ada.ID); err != nil || got.Link != "" || got.Email != "ada@client.example" {
		t.Errorf("%+v, %v", got, err)
	}
	found := false
	for u, err := range c.Users.List(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		found = found || u.ID == ada.ID
	}
	sessions, err := c.Users.ListSessions(ctx, ada.ID)
	ended, endErr := c.Users.EndSessions(ctx, ada.ID)
	if !found || len(sessions.Sessions) != 0 || ended.Ended != 0 || errors.Join(err, endErr) != nil {
		t.Errorf("%v, %v, %v, %v, %v", found, sessions, ended, err, endErr)
	}
	if err := c.Users.EndSession(ctx, ada.ID, ada.ID); !notFound(err) {
		t.Errorf("%v", err)
	}
	if err := c.Users.Delete(ctx, ada.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Users.Get(ctx, ada.ID); !notFound(err) {
		t.Errorf("%v", err)
	}
}

func notFound(err error) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && problem.Name() == "not-found"
}
