package console

import (
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

// menu lists the entries of the menu, the most used ones first.
var menu = []frame.NavItem{
	{Path: "/now", Name: "Now", Scope: push.ScopeRecordsRead},
	{Path: "/recipients", Name: "Recipients", Scope: push.ScopeQuota},
	{Path: "/why", Name: "Why not sent?", Scope: push.ScopeQuota},
	{Path: "/campaigns", Name: "Campaigns", Scope: push.ScopeCampaignsRead},
	{Path: "/calendar", Name: "Calendar", Scope: push.ScopeRecordsRead},
	{Path: "/pushes", Name: "Messages", Scope: push.ScopeRead},
	{Path: "/failures", Name: "Failures", Scope: push.ScopeRecordsRead},
	{Path: "/schedules", Name: "Schedules", Scope: push.ScopeCampaignsRead},
	{Path: "/policy", Name: "Policy", Scope: push.ScopePolicyRead},
	{Path: "/settings", Name: "Settings", Scope: ""},
	{Path: "/proof", Name: "Audit", Scope: push.ScopeRecordsRead},
}
