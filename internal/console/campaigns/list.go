package campaigns

import (
	"html/template"
	"strings"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/zone"
)

// campaignsView is the list of campaigns.
type campaignsView struct {
	client.CampaignsPage
	Statuses []client.CampaignStatus
}

var campaignStatuses = []client.CampaignStatus{
	client.CampaignStatusDraft, client.CampaignStatusStarting, client.CampaignStatusRunning, client.CampaignStatusPausing, client.CampaignStatusPaused,
	client.CampaignStatusCanceling, client.CampaignStatusCanceled, client.CampaignStatusFinished,
}

// showCampaigns lists campaigns, the latest first.
func showCampaigns(p *frame.Page) error {
	view := campaignsView{Statuses: campaignStatuses}
	if err := p.List("/v1/campaigns", 50, &view.CampaignsPage, "status", "page_token"); err != nil {
		return p.ShowAgain(err, "campaigns", "Campaigns", view)
	}
	return p.Show("campaigns", "Campaigns", view)
}

// statusChoice describes the campaigns of a status, for the filter of the list.
func statusChoice(s client.CampaignStatus) string {
	switch s {
	case client.CampaignStatusStarting:
		return "being scheduled"
	case client.CampaignStatusRunning:
		return "scheduled or sending"
	case client.CampaignStatusFinished:
		return "sent, or not sent"
	}
	return string(s)
}

// campaignTime returns the send time of a campaign.
func campaignTime(p *frame.Page, c client.Campaign) template.HTML {
	switch {
	case !c.SendAt.IsZero():
		return p.Time(c.SendAt)
	case c.LocalTime != "" && c.TimeZone != "":
		return oneZone(p, c)
	case c.LocalTime != "":
		return template.HTML(template.HTMLEscapeString(localWords(c.LocalTime) + " at each person’s local time"))
	case !c.StartedAt.IsZero():
		return p.Time(c.StartedAt)
	}
	return "as soon as it starts"
}

// oneZone returns the send time of a campaign with a local time in one zone, with its distance from now if the zone is known.
func oneZone(p *frame.Page, c client.Campaign) template.HTML {
	local, err := zone.ParseLocal(c.LocalTime)
	in := frame.LoadZone(c.TimeZone)
	if err != nil || in == nil {
		return template.HTML(template.HTMLEscapeString(localWords(c.LocalTime) + " in " + c.TimeZone))
	}
	at := zone.Instant(local, in)
	clocks, named, away := frame.FormatTime(at, in, p.Now())
	return frame.TimeElement(at, clocks, named, away)
}

// localWords is a time of clocks as people write it.
func localWords(local string) string { return strings.Replace(local, "T", " ", 1) }

// showCampaign shows a draft with its steps, or how far a campaign is that was started.
func showCampaign(p *frame.Page) error {
	var one client.Campaign
	if err := p.ReadExact("/v1/campaigns/"+frame.PathPart(p.Param("id")), &one); err != nil {
		return err
	}
	if one.Status == client.CampaignStatusDraft {
		return showDraft(p, "", newDraftView(one))
	}
	return p.Show("campaign", frame.CampaignName(one), runningView{Campaign: one})
}

// deleteCampaign removes a draft.
func deleteCampaign(p *frame.Page) error {
	if err := p.API.Campaigns.Delete(p.Context(), p.Param("id")); err != nil {
		return err
	}
	return p.Done("Draft deleted.", p.Link("/campaigns"))
}
