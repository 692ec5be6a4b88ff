package console

import "github.com/sendquota/sendquota/internal/push"

// settingsPages are the parts of the settings, with the scope that each needs.
var settingsPages = []navItem{
	{"/settings/keys", "API keys", push.ScopeKeysRead},
	{"/settings/webhooks", "Webhooks", push.ScopeHooks},
	{"/settings/channels", "Channels", push.ScopeRead},
	{"/settings/caps", "Caps", push.ScopeRead},
	{"/settings/users", "Users", push.ScopeUsersRead},
	{"/settings/sessions", "My sessions", push.ScopeUsersRead},
}

// menuOf are those that the user's role can open.
func menuOf(p *page) []navItem {
	var items []navItem
	for _, item := range settingsPages {
		if item.Scope == "" || p.May(item.Scope) {
			items = append(items, item)
		}
	}
	return items
}

// openSettings goes to the first part that the role can open.
func openSettings(p *page) error {
	for _, item := range menuOf(p) {
		return p.redirect(p.Link(item.Path))
	}
	return p.show("settings", "Settings", nil)
}
