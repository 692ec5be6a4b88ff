// Package campaigns has the pages of campaigns and of the schedules that repeat them.
package campaigns

import (
	"embed"
	"html/template"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/internal/push"
)

//go:embed templates
var templates embed.FS

// Section has campaigns and schedules.
var Section = frame.Section{
	Templates: templates,
	Functions: template.FuncMap{
		"campaigntime": campaignTime,
		"cronwords":    cronWords,
		"maystep":      mayStep,
		"outcomes":     outcomes,
		"parts":        parts,
		"statuschoice": statusChoice,
	},
	Routes: campaignsRoutes,
}

// campaignsRoutes adds the pages of campaigns and schedules.
func campaignsRoutes(r frame.Routes) {
	campaignRoutes(r)
	scheduleRoutes(r)
}

func campaignRoutes(r frame.Routes) {
	r.Get("/campaigns", push.ScopeCampaignsRead, showCampaigns)
	r.Get("/campaigns/new", push.ScopeCampaignsDraft, newCampaign)
	r.Long("/campaigns/new", push.ScopeCampaignsDraft, createCampaign)
	r.Get("/campaigns/{id}", push.ScopeCampaignsRead, showCampaign)
	r.Get("/campaigns/{id}/message", push.ScopeCampaignsDraft, draft(showMessage))
	r.Long("/campaigns/{id}/message", push.ScopeCampaignsDraft, draft(changeMessage))
	r.Get("/campaigns/{id}/audience", push.ScopeCampaignsDraft, draft(showAudience))
	r.Post("/campaigns/{id}/audience", push.ScopeCampaignsDraft, draft(putAudience))
	r.Form("/campaigns/{id}/audience/columns", "/campaigns/{id}/audience", push.ScopeCampaignsDraft, draft(showColumns))
	r.Get("/campaigns/{id}/audience/bad-lines", "", frame.BackTo("/campaigns/{id}/audience"))
	r.Long("/campaigns/{id}/audience/bad-lines", push.ScopeCampaignsRead, downloadBadRows)
	r.Get("/campaigns/{id}/preview", push.ScopeCampaignsRead, draft(previewDraft))
	r.Get("/campaigns/{id}/when", push.ScopeCampaignsDraft, draft(showWhen))
	r.Post("/campaigns/{id}/when", push.ScopeCampaignsDraft, draft(changeWhen))
	r.Form("/campaigns/{id}/send-at", "/campaigns/{id}/simulation", push.ScopeCampaignsDraft, draft(takeStart))
	r.Get("/campaigns/{id}/simulation", push.ScopeCampaignsRead, draft(simulateDraft))
	r.Get("/campaigns/{id}/start", push.ScopeCampaignsWrite, draft(showStart))
	r.Post("/campaigns/{id}/start", push.ScopeCampaignsWrite, draft(startCampaign))
	r.Form("/campaigns/{id}/delete", "/campaigns/{id}", push.ScopeCampaignsDraft, deleteCampaign)
	r.Get("/campaigns/{id}/live", push.ScopeCampaignsRead, streamCampaign)
	r.Form("/campaigns/{id}/pause", "/campaigns/{id}", push.ScopeCampaignsWrite, pauseCampaign)
	r.Form("/campaigns/{id}/resume", "/campaigns/{id}", push.ScopeCampaignsWrite, resumeCampaign)
	r.Get("/campaigns/{id}/cancel", push.ScopeCampaignsWrite, askCancel)
	r.Post("/campaigns/{id}/cancel", push.ScopeCampaignsWrite, cancelCampaign)
	r.Get("/campaigns/{id}/recipients", push.ScopeCampaignsRead, showCampaignRecipients)
	r.Get("/campaigns/{id}/export", push.ScopeCampaignsRead, exportCampaign)
}

func scheduleRoutes(r frame.Routes) {
	r.Get("/schedules", push.ScopeCampaignsRead, showSchedules)
	r.Get("/schedules/new", push.ScopeCampaignsWrite, newSchedule)
	r.Long("/schedules/new", push.ScopeCampaignsWrite, createSchedule)
	r.Get("/schedules/{id}", push.ScopeCampaignsRead, showSchedule)
	r.Long("/schedules/{id}", push.ScopeCampaignsWrite, changeSchedule)
	r.Form("/schedules/{id}/delete", "/schedules/{id}", push.ScopeCampaignsWrite, deleteSchedule)
}
