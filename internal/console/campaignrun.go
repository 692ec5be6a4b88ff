package console

import (
	"io"
	"time"

	"github.com/sendquota/sendquota/client"
)

// runningView is a campaign that was started.
type runningView struct {
	client.Campaign
	Recipients []client.CampaignRecipient // of the page of the list
	Next       string                     // page of it
}

// outcomeCount is how many recipients have come how far.
type outcomeCount struct {
	Outcome string
	Means   string
	Count   int64
}

// outcomes are the numbers of a campaign, in the order in which things happen.
func outcomes(c client.Progress) []outcomeCount {
	return []outcomeCount{
		{"pending", "not processed yet", c.Pending},
		{"scheduled", "scheduled, not sent yet", c.Scheduled},
		{"sent", "handed to the provider", c.Sent},
		{"failed", "refused by the provider, or all attempts failed", c.Failed},
		{"expired", "could not be sent in time", c.Expired},
		{"refused", "limit reached", c.Refused},
		{"opted_out", "do not want it", c.OptedOut},
		{"invalid", "cannot be personalised", c.Invalid},
		{"canceled", "canceled before they were sent", c.Canceled},
	}
}

// Tried is how many recipients the campaign was sent to, or failed for. A recipient that gets nothing is none of them.
func (v runningView) Tried() int64 { return v.Progress.Sent + v.Progress.Failed }

// Skipped is how many recipients got nothing without a failure: the quota, an opt-out, their line, an expiry or a cancel was in the way.
func (v runningView) Skipped() int64 {
	is := v.Progress
	return is.Refused + is.OptedOut + is.Invalid + is.Expired + is.Canceled
}

// Over reports whether nothing more happens to the campaign.
func (v runningView) Over() bool {
	return v.Status == client.CampaignStatusFinished || v.Status == client.CampaignStatusCanceled
}

// MayPause, MayResume and MayCancel say what goes with the state.
func (v runningView) MayPause() bool {
	return v.Status == client.CampaignStatusStarting || v.Status == client.CampaignStatusRunning
}

// MayResume reports whether it can go on.
func (v runningView) MayResume() bool {
	return v.Status == client.CampaignStatusPaused || v.Status == client.CampaignStatusPausing
}

// MayCancel reports whether it can be canceled.
func (v runningView) MayCancel() bool { return v.MayPause() || v.MayResume() }

// GivenBack is how many recipients a cancel would leave without the message: the places of those that have one are free again.
func (v runningView) GivenBack() int64 { return v.Progress.Pending + v.Progress.Scheduled }

// progressEvery is how often a page looks how far a campaign is.
const progressEvery = 2 * time.Second

// streamCampaign streams how far a campaign is.
func streamCampaign(p *page) error {
	id := p.param("id")
	return p.stream("campaign", "progress", progressEvery, func() (any, error) {
		one, err := p.api.Campaigns.Get(p.ctx(), id)
		return runningView{Campaign: one}, err
	})
}

// pauseCampaign, resumeCampaign and cancelCampaign change what becomes of the rest.
func pauseCampaign(p *page) error {
	one, err := p.api.Campaigns.Pause(p.ctx(), p.param("id"))
	return acted(p, one, err, "Campaign paused. Sending stops within two seconds; scheduled recipients stay scheduled.")
}

func resumeCampaign(p *page) error {
	one, err := p.api.Campaigns.Resume(p.ctx(), p.param("id"))
	return acted(p, one, err, "Campaign resumed.")
}

// askCancel says what a cancel would give back.
func askCancel(p *page) error {
	one, err := p.api.Campaigns.Get(p.ctx(), p.param("id"))
	if err != nil {
		return err
	}
	return p.show("campaigncancel", "Cancel "+campaignName(one)+"?", runningView{Campaign: one})
}

func cancelCampaign(p *page) error {
	one, err := p.api.Campaigns.Cancel(p.ctx(), p.param("id"))
	v := runningView{Campaign: one}
	return acted(p, one, err, "Campaign canceled. "+counted(v.GivenBack(), "recipient does", "recipients do")+" not get it; "+
		counted(one.Progress.Scheduled, "scheduled message is", "scheduled messages are")+" being removed. "+counted(one.Progress.Sent, "was", "were")+" sent it already.")
}

func acted(p *page, one client.Campaign, err error, done string) error {
	if err != nil {
		return err
	}
	return p.done(done, p.Link("/campaigns/"+one.ID))
}

// showCampaignRecipients lists what became of the recipients, by outcome.
func showCampaignRecipients(p *page) error {
	one, err := p.api.Campaigns.Get(p.ctx(), p.param("id"))
	if err != nil {
		return err
	}
	v := runningView{Campaign: one}
	var found client.CampaignRecipientsPage
	err = p.List("/v1/campaigns/"+pathPart(one.ID)+"/recipients", 100, &found, "outcome", "recipient", "page_token")
	v.Recipients, v.Next = found.Recipients, found.NextPageToken
	if err != nil {
		return p.again(err, "campaignrecipients", campaignName(one)+": results by person", v)
	}
	return p.show("campaignrecipients", campaignName(one)+": results by person", v)
}

// exportCampaign hands on the recipients with what became of them, while they are read.
func exportCampaign(p *page) error {
	return p.export("recipients", func(as client.Format, dialect string) (io.ReadCloser, error) {
		return p.api.Campaigns.ExportRecipients(p.ctx(), p.param("id"), client.ExportCampaignRecipientsOptions{Outcome: p.Query("outcome"), Dialect: dialect}, as)
	})
}
