// Package system has the pages of the status, the policy and the settings.
package system

import (
	"embed"
	"html/template"

	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

//go:embed templates
var templates embed.FS

// Section has the status, the policy and the settings.
var Section = frame.Section{
	Templates: templates,
	Functions: template.FuncMap{
		"capwords":       capWords,
		"channelwords":   settingsChannelWords,
		"channelproblem": problemSentence,
		"countwords":     frame.CountWords,
		"typewords":      typeWords,
		"mayedit":        mayEditChannels,
		"oneself":        oneself,
		"per":            throughputPer,
		"roles":          roles,
		"scopewords":     scopeWordsOf,
		"settingspages":  menuOf,
		"thisbrowser":    thisBrowser,
	},
	Routes: systemRoutes,
}

// systemRoutes adds the pages of the status, the policy and the settings.
func systemRoutes(r frame.Routes) {
	r.Get("/now", push.ScopeRecordsRead, showNow)
	r.Get("/now/live", push.ScopeRecordsRead, streamNow)

	r.Get(frame.PausesPath, push.ScopePausesRead, showPauses)
	r.Post(frame.PausesPath, push.ScopePausesWrite, stopSending)
	r.Form(frame.PausesPath+"/{id}/resume", frame.PausesPath, push.ScopePausesWrite, resumeSending)

	r.Get("/policy", push.ScopePolicyRead, showPolicy)
	r.Long("/policy", push.ScopePolicyWrite, savePolicy)
	r.Form("/policy/delete", "/policy", push.ScopePolicyWrite, deletePolicy)

	r.Get("/settings", "", openSettings)
	r.Get("/settings/keys", push.ScopeKeysRead, showKeys)
	r.Post("/settings/keys", push.ScopeKeysWrite, createKey)
	r.Form("/settings/keys/{id}/rotate", "/settings/keys", push.ScopeKeysWrite, rotateKey)
	r.Form("/settings/keys/{id}/revoke", "/settings/keys", push.ScopeKeysWrite, revokeKey)
	r.Get("/settings/webhooks", push.ScopeHooks, showWebhooks)
	r.Post("/settings/webhooks", push.ScopeHooks, createWebhook)
	r.Get("/settings/webhooks/{id}", push.ScopeHooks, showWebhook)
	r.Post("/settings/webhooks/{id}", push.ScopeHooks, actOnWebhook)
	r.Get(channelsPage, push.ScopeChannelsRead, showChannels)
	r.Long(channelsPage, push.ScopeWrite, testSend)
	r.Get(newChannel, push.ScopeChannelsWrite, showNewChannel)
	r.Long(newChannel, push.ScopeChannelsWrite, createChannel)
	r.Get(ownChannel+"{name}", push.ScopeChannelsRead, showChannel)
	r.Long(ownChannel+"{name}", push.ScopeChannelsWrite, actOnChannel)
	r.Get("/settings/caps", push.ScopeRead, showCaps)
	r.Get("/settings/users", push.ScopeUsersRead, showUsers)
	r.Post("/settings/users", push.ScopeUsersWrite, createUser)
	r.Get("/settings/users/{id}", push.ScopeUsersRead, showUser)
	r.Post("/settings/users/{id}", push.ScopeUsersWrite, actOnUser)
	r.Get("/settings/sessions", push.ScopeUsersRead, showMySessions)
	r.Post("/settings/sessions", push.ScopeUsersRead, endMySessions)
}

// settingsPages are the parts of the settings, with the scope that each needs.
var settingsPages = []frame.NavItem{
	{Path: "/settings/keys", Name: "API keys", Scope: push.ScopeKeysRead},
	{Path: "/settings/webhooks", Name: "Webhooks", Scope: push.ScopeHooks},
	{Path: channelsPage, Name: "Channels", Scope: push.ScopeChannelsRead},
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
