// Package calendar has the calendar of scheduled messages and of campaigns.
package calendar

import (
	"embed"

	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

//go:embed templates
var templates embed.FS

// Section has the calendar.
var Section = frame.Section{
	Templates: templates,
	Routes:    calendarRoutes,
}

// calendarRoutes adds the pages of the calendar.
func calendarRoutes(r frame.Routes) {
	r.Get("/calendar", push.ScopeRecordsRead, showCalendar)
	r.Get("/calendar/campaigns/{id}", push.ScopeCampaignsDraft, moveCampaign)
	r.Post("/calendar/campaigns/{id}", push.ScopeCampaignsDraft, saveMove)
}
