package system

import (
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

// settingsPages are the parts of the settings, with the scope that each needs.
var settingsPages = []frame.NavItem{
	{Path: "/settings/keys", Name: "API keys", Scope: push.ScopeKeysRead},
	{Path: "/settings/webhooks", Name: "Webhooks", Scope: push.ScopeHooks},
	{Path: "/settings/channels", Name: "Channels", Scope: push.ScopeRead},
	{Path: "/settings/caps", Name: "Caps", Scope: push.ScopeRead},
	{Path: "/settings/users", Name: "Users", Scope: push.ScopeUsersRead},
	{Path: "/settings/sessions", Name: "My sessions", Scope: push.ScopeUsersRead},
}

// menuOf returns the pages that the user's role can open.
func menuOf(p *frame.Page) []frame.NavItem {
	var items []frame.NavItem
	for _, item := range settingsPages {
		if item.Scope == "" || p.May(item.Scope) {
			items = append(items, item)
		}
	}
	return items
}

// openSettings goes to the first part that the role can open.
func openSettings(p *frame.Page) error {
	for _, item := range menuOf(p) {
		return p.Redirect(p.Link(item.Path))
	}
	return p.Show("settings", "Settings", nil)
}
