package console

import "github.com/sendquota/sendquota/internal/push"

// settingsPages are the parts of the settings, with the scope that each needs.
var settingsPages = []navItem{
	{"/settings/keys", "API keys", push.ScopeKeysRead},
	{"/settings/webhooks", "Webhooks", push.ScopeHooks},
	{"/settings/channels", "Channels", push.ScopeRead},
	{"/settings/caps", "Caps", push.ScopeRead},
}

// SettingsPages are those that the user's role can open.
func (p *page) SettingsPages() []navItem {
	var items []navItem
	for _, item := range settingsPages {
		if item.Scope == "" || p.May(item.Scope) {
			items = append(items, item)
		}
	}
	return items
}

// settings goes to the first part that the role can open.
func (p *page) settings() error {
	for _, item := range p.SettingsPages() {
		return p.redirect(p.Link(item.Path))
	}
	return p.show("settings", "Settings", nil)
}
