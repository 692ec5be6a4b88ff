package system

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/push"
)

// keysView is the list of API keys, and one that was just made.
type keysView struct {
	client.KeysPage
	Made   *client.Key // with its secret, which is shown this once
	Scopes []string    // that a key of this user's can have
	Chosen map[string]bool

	Rotating string // the id of the key whose form to rotate it was sent
}

func readKeys(p *frame.Page) (*keysView, error) {
	view := &keysView{Chosen: map[string]bool{}}
	for _, scope := range push.Scopes {
		if p.May(scope) {
			view.Scopes = append(view.Scopes, scope)
		}
	}
	for _, scope := range p.Request.PostForm["scopes"] {
		view.Chosen[scope] = true
	}
	query := url.Values{"page_size": {"100"}}
	if token := p.Query("page_token"); token != "" {
		query.Set("page_token", token)
	}
	return view, p.API.Get(p.Context(), "/v1/keys", query, &view.KeysPage)
}

func showKeys(p *frame.Page) error {
	view, err := readKeys(p)
	if err != nil {
		return err
	}
	return p.Show("settingskeys", "API keys", view)
}

// createKey makes a key, and shows it in the answer itself: it is stored nowhere to be shown again.
func createKey(p *frame.Page) error {
	var wrong frame.Faults
	made := client.NewKey{Name: p.Field("name")}
	for _, scope := range p.Request.PostForm["scopes"] {
		made.Scopes = append(made.Scopes, client.NewKeyScopes(scope))
	}
	if len(made.Scopes) == 0 {
		wrong.Add("scopes", errors.New("choose at least one scope"))
	}
	if until := p.Field("expires_at"); until != "" {
		at, err := p.ReadLocal(until)
		wrong.Add("expires_at", err)
		made.ExpiresAt = at
	}
	err := wrong.Problem()
	var key client.Key
	if err == nil {
		key, err = p.API.Keys.Create(p.Context(), made)
	}
	return withKey(p, key, err)
}

// rotateKey makes the successor of a key.
func rotateKey(p *frame.Page) error {
	hours, err := duration.Parse(p.Field("overlap"))
	if err != nil {
		return withKey(p, client.Key{}, faultOf("overlap", fmt.Errorf("%q is not a time span. Write it as 24h or 7d", p.Field("overlap"))))
	}
	key, err := p.API.Keys.Rotate(p.Context(), p.Param("id"), client.KeyRotation{Overlap: hours.String()})
	return withKey(p, key, err)
}

// withKey shows the list with a key that was made, or why none was.
func withKey(p *frame.Page, key client.Key, failed error) error {
	view, err := readKeys(p)
	if err != nil {
		return err
	}
	if failed != nil {
		view.Rotating = p.Param("id")
		return p.ShowAgain(failed, "settingskeys", "API keys", view)
	}
	view.Made, view.Chosen, p.Request.PostForm = &key, nil, nil // the form is for another one
	return p.Show("settingskeys", "API keys", view)
}

func faultOf(field string, err error) error {
	var wrong frame.Faults
	wrong.Add(field, err)
	return wrong.Problem()
}

func revokeKey(p *frame.Page) error {
	if err := p.API.Keys.Revoke(p.Context(), p.Param("id"), client.RevokeKeyOptions{}); err != nil {
		return err
	}
	return p.Done("Key revoked. It stops working within a second.", p.Link("/settings/keys"))
}

// scopeWords describes the rights of each scope.
var scopeWords = map[string]string{
	push.ScopeWrite:             "send, move, cancel and retry messages",
	push.ScopeRead:              "see messages and their outcomes",
	push.ScopeQuota:             "check when a person can get a message",
	push.ScopeLimits:            "use the rate limits for other things than messages",
	push.ScopeHooks:             "create, change and test webhooks, and see their deliveries",
	push.ScopeRecipientsRead:    "see recipients with their addresses and opt-outs",
	push.ScopeRecipientsWrite:   "create, change and erase recipients",
	push.ScopePolicyRead:        "see the rules of the policy",
	push.ScopePolicyWrite:       "change the rules of the policy, but not scheduled messages",
	push.ScopeCampaignsRead:     "see campaigns and schedules",
	push.ScopeCampaignsDraft:    "draft campaigns, but not start them or change what a schedule sends",
	push.ScopeCampaignsWrite:    "start, move and cancel campaigns; change schedules",
	push.ScopeRecordsRead:       "see sends, refusals, statistics, audits and the activity log",
	push.ScopeKeysRead:          "see API keys, without their secrets",
	push.ScopeKeysWrite:         "create and revoke API keys",
	push.ScopeUsersRead:         "see the users of the console",
	push.ScopeUsersWrite:        "create, change and delete users",
	push.ScopePausesRead:        "see what is paused",
	push.ScopePausesWrite:       "stop and resume sending",
	push.ScopeSuppressionsRead:  "see suppressed addresses",
	push.ScopeSuppressionsWrite: "add, import and remove suppressed addresses",
	push.ScopeChannelsRead:      "read the state of channels, and the settings of your own without secrets",
	push.ScopeChannelsWrite:     "make, change, test and delete channels of your own; includes channels:read",
}

// scopeWordsOf describes the rights of a scope.
func scopeWordsOf(scope string) string { return scopeWords[scope] }
