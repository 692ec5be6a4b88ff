package console

import (
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

// calendarRoom has the calendar.
var calendarRoom = frame.Room{
	Templates: templatesOf("calendar"),
	Routes:    calendarRoutes,
}

// calendarRoutes adds the pages of the calendar.
func calendarRoutes(r frame.Routes) {
	r.Get("/calendar", push.ScopeRecordsRead, showCalendar)
	r.Get("/calendar/campaigns/{id}", push.ScopeCampaignsDraft, moveCampaign)
	r.Post("/calendar/campaigns/{id}", push.ScopeCampaignsDraft, saveMove)
}
