package console

import (
	"html/template"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/zone"
)

// draftScope is what users need to draft campaigns, and startScope to have them sent.
const (
	draftScope = push.ScopeCampaignsDraft
	startScope = push.ScopeCampaignsWrite
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

// campaigns lists campaigns, the latest first.
func (p *page) campaigns() error {
	view := campaignsView{Statuses: campaignStatuses}
	if err := p.list("/v1/campaigns", 50, &view.CampaignsPage, "status", "page_token"); err != nil {
		return p.again(err, "campaigns", "Campaigns", view)
	}
	return p.show("campaigns", "Campaigns", view)
}

// StatusChoice describes the campaigns of a status, for the filter of the list.
func (p *page) StatusChoice(s client.CampaignStatus) string {
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

// phaseWords names a phase.
func phaseWords(phase client.CampaignPhase) string {
	return strings.ReplaceAll(string(phase), "_", " ")
}

// campaignName is what a campaign is called on pages.
func campaignName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "Campaign without a name"
	}
	return c.Name
}

// CampaignName is that for templates.
func (p *page) CampaignName(c client.Campaign) string { return campaignName(c) }

// CampaignChoice is what tells a campaign apart in a choice: its name, or when it was made.
func (p *page) CampaignChoice(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return campaignName(c) + ", created " + p.PlainTime(c.CreatedAt.Truncate(time.Second))
	}
	return c.Name
}

// quotedName is the name of a campaign within a sentence.
func quotedName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "the campaign without a name"
	}
	return "“" + c.Name + "”"
}

// CampaignTime says when a campaign is sent.
func (p *page) CampaignTime(c client.Campaign) template.HTML {
	switch {
	case !c.SendAt.IsZero():
		return p.Time(c.SendAt)
	case c.LocalTime != "" && c.TimeZone != "":
		return p.oneZone(c)
	case c.LocalTime != "":
		return template.HTML(template.HTMLEscapeString(localWords(c.LocalTime) + " at each person’s local time"))
	case !c.StartedAt.IsZero():
		return p.Time(c.StartedAt)
	}
	return "as soon as it starts"
}

// oneZone is the time of a campaign that all get when the clocks of one zone show it: with how far it is away, if it can be told.
func (p *page) oneZone(c client.Campaign) template.HTML {
	local, err := zone.ParseLocal(c.LocalTime)
	in := loadZone(c.TimeZone)
	if err != nil || in == nil {
		return template.HTML(template.HTMLEscapeString(localWords(c.LocalTime) + " in " + c.TimeZone))
	}
	at := zone.Instant(local, in)
	clocks, named, away := written(at, in, p.Now())
	return timeElement(at, clocks, named, away)
}

// localWords is a time of clocks as people write it.
func localWords(local string) string { return strings.Replace(local, "T", " ", 1) }

// counted is a number with the words that go with it.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// campaign shows a draft with its steps, or how far a campaign is that was started.
func (p *page) campaign() error {
	var one client.Campaign
	if err := p.readExact("/v1/campaigns/"+pathPart(p.param("id")), &one); err != nil {
		return err
	}
	if one.Status == client.CampaignStatusDraft {
		return p.showDraft("", newDraftView(one))
	}
	return p.show("campaign", campaignName(one), runningView{Campaign: one})
}

// deleteCampaign removes a draft.
func (p *page) deleteCampaign() error {
	if err := p.api.Campaigns.Delete(p.ctx(), p.param("id")); err != nil {
		return err
	}
	return p.done("Draft deleted.", p.Link("/campaigns"))
}
