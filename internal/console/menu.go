package console

import "github.com/sendquota/sendquota/internal/push"

// menu lists the entries of the menu, the most used ones first.
var menu = []navItem{
	{"/now", "Now", push.ScopeRecordsRead},
	{"/recipients", "Recipients", push.ScopeQuota},
	{"/why", "Why not sent?", push.ScopeQuota},
	{"/campaigns", "Campaigns", push.ScopeCampaignsRead},
	{"/calendar", "Calendar", push.ScopeRecordsRead},
	{"/pushes", "Messages", push.ScopeRead},
	{"/failures", "Failures", push.ScopeRecordsRead},
	{"/schedules", "Schedules", push.ScopeCampaignsRead},
	{"/policy", "Policy", push.ScopePolicyRead},
	{"/settings", "Settings", ""},
	{"/proof", "Audit", push.ScopeRecordsRead},
}
