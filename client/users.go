package client

import (
	"context"
	"iter"
	"net/http"
)

// CreateUser makes a user of the console, whose Link to set a password is in this answer only. It is not made again after a
// lost answer.
func (c *Client) CreateUser(ctx context.Context, u NewUser) (User, error) {
	return ask[User](ctx, c, call{method: http.MethodPost, path: path("users"), body: u})
}

// User reads what is known of a user.
func (c *Client) User(ctx context.Context, id string) (User, error) {
	return ask[User](ctx, c, call{method: http.MethodGet, path: path("users", id), repeat: true})
}

// Users lists the users of the console, the oldest first.
func (c *Client) Users(ctx context.Context) iter.Seq2[User, error] {
	return list(ctx, c, path("users"), params{"page_size": pageSize}.values(), func(p UsersPage) ([]User, string) { return p.Users, p.NextPageToken })
}

// ChangeUser changes what is not nil. A role is in force at once; a user who is disabled is signed out.
func (c *Client) ChangeUser(ctx context.Context, id string, change UserChange) (User, error) {
	return ask[User](ctx, c, call{method: http.MethodPatch, path: path("users", id), body: change, repeat: true})
}

// LinkUser makes another Link with which a user sets a password. It is in this answer only.
func (c *Client) LinkUser(ctx context.Context, id string) (User, error) {
	return ask[User](ctx, c, call{method: http.MethodPost, path: path("users", id, "link")})
}

// DeleteUser removes a user, who is signed out everywhere.
func (c *Client) DeleteUser(ctx context.Context, id string) error {
	return c.tell(ctx, call{method: http.MethodDelete, path: path("users", id)})
}

// Sessions lists where a user is signed in, the session that was seen last first.
func (c *Client) Sessions(ctx context.Context, user string) ([]Session, error) {
	page, err := ask[SessionsPage](ctx, c, call{method: http.MethodGet, path: path("users", user, "sessions"), repeat: true})
	return page.Sessions, err
}

// EndSession signs a user out in one browser.
func (c *Client) EndSession(ctx context.Context, user, session string) error {
	return c.tell(ctx, call{method: http.MethodDelete, path: path("users", user, "sessions", session)})
}

// EndSessions signs a user out everywhere, and says how many sessions went on.
func (c *Client) EndSessions(ctx context.Context, user string) (int, error) {
	ended, err := ask[Ended](ctx, c, call{method: http.MethodDelete, path: path("users", user, "sessions"), repeat: true})
	return int(ended.Ended), err
}
