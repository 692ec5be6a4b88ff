package console

import "github.com/sendquota/sendquota/internal/push"

// calendarRoom has the calendar.
var calendarRoom = room{
	Templates: templatesOf("calendar"),
	Routes:    calendarRoutes,
}

// calendarRoutes adds the pages of the calendar.
func calendarRoutes(r routes) {
	r.Get("/calendar", push.ScopeRecordsRead, showCalendar)
	r.Get("/calendar/campaigns/{id}", draftScope, moveCampaign)
	r.Post("/calendar/campaigns/{id}", draftScope, saveMove)
}
