package console

import (
	"embed"
	"fmt"
	"net/http"
	"sync"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/console/activity"
	"github.com/sendquota/sendquota/internal/console/calendar"
	"github.com/sendquota/sendquota/internal/console/campaigns"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/console/people"
	"github.com/sendquota/sendquota/internal/console/system"
	"github.com/sendquota/sendquota/internal/push"
)

// New returns the console in front of an API that serves /v1.
func New(api http.Handler, auth frame.Authenticator, cfg frame.Config) http.Handler {
	return frame.New(api, auth, allScreens(), menu, cfg).Handler()
}

// sections are the parts of the console. [SignIn] adds the pages of the first one.
var sections = []frame.Section{{Templates: templates}, campaigns.Section, calendar.Section, people.Section, activity.Section, system.Section}

//go:embed templates
var templates embed.FS

// allScreens parses the templates once for all consoles of a process.
var allScreens = sync.OnceValue(func() *frame.Screens { return frame.NewScreens(newAssets(), sections) })

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

// The files of others, unmodified, and ours. No folder is inside of vendor: a module that is downloaded lacks those.
//
//go:embed vendor static
var files embed.FS

// newAssets serves /console/vendor/… and /console/static/…; its Path is the function asset of the templates.
func newAssets() *assets.Files {
	f, err := assets.New("/console/", files)
	if err != nil {
		panic(fmt.Errorf("the files of the console: %w", err)) // at boot, not when one is asked for
	}
	return f
}
