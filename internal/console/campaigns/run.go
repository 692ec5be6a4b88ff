package campaigns

import (
	"io"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// runningView is a campaign that was started.
type runningView struct {
	client.Campaign
	Recipients []client.CampaignRecipient // of the page of the list
	Next       string                     // page of it
}

// outcomeCount is the number of recipients with an outcome.
type outcomeCount struct {
	Outcome string
	Means   string
	Count   int64
}

// outcomes returns the counts of a campaign in the order of events.
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

// Tried returns the number of recipients with a sent or failed message.
func (v runningView) Tried() int64 { return v.Progress.Sent + v.Progress.Failed }

// Skipped returns the number of recipients without a message and without a failure: refused, opted out, invalid, expired or canceled.
func (v runningView) Skipped() int64 {
	is := v.Progress
	return is.Refused + is.OptedOut + is.Invalid + is.Expired + is.Canceled
}

// Over reports whether nothing more happens to the campaign.
func (v runningView) Over() bool {
	return v.Status == client.CampaignStatusFinished || v.Status == client.CampaignStatusCanceled
}

// MayPause, MayResume and MayCancel report whether the state allows the action.
func (v runningView) MayPause() bool {
	return v.Status == client.CampaignStatusStarting || v.Status == client.CampaignStatusRunning
}

// MayResume reports whether it can go on.
func (v runningView) MayResume() bool {
	return v.Status == client.CampaignStatusPaused || v.Status == client.CampaignStatusPausing
}

// MayCancel reports whether it can be canceled.
func (v runningView) MayCancel() bool { return v.MayPause() || v.MayResume() }

// GivenBack returns the number of recipients that would not get the message after a cancel.
func (v runningView) GivenBack() int64 { return v.Progress.Pending + v.Progress.Scheduled }

// progressEvery is the interval between updates of the progress.
const progressEvery = 2 * time.Second

// streamCampaign streams how far a campaign is.
func streamCampaign(p *frame.Page) error {
	id := p.Param("id")
	return p.Stream("campaign", "progress", progressEvery, func() (any, error) {
		p.LookAgain()
		one, err := p.API.Campaigns.Get(p.Context(), id)
		return runningView{Campaign: one}, err
	})
}

// pauseCampaign, resumeCampaign and cancelCampaign change the state of a campaign.
func pauseCampaign(p *frame.Page) error {
	one, err := p.API.Campaigns.Pause(p.Context(), p.Param("id"))
	return acted(p, one, err, "Campaign paused. Sending stops within two seconds; scheduled recipients stay scheduled.")
}

func resumeCampaign(p *frame.Page) error {
	one, err := p.API.Campaigns.Resume(p.Context(), p.Param("id"))
	return acted(p, one, err, "Campaign resumed.")
}

// askCancel shows the effect of a cancel.
func askCancel(p *frame.Page) error {
	one, err := p.API.Campaigns.Get(p.Context(), p.Param("id"))
	if err != nil {
		return err
	}
	return p.Show("campaigncancel", "Cancel "+frame.CampaignName(one)+"?", runningView{Campaign: one})
}

func cancelCampaign(p *frame.Page) error {
	one, err := p.API.Campaigns.Cancel(p.Context(), p.Param("id"))
	v := runningView{Campaign: one}
	return acted(p, one, err, "Campaign canceled. "+frame.CountWords(v.GivenBack(), "recipient does", "recipients do")+" not get it; "+
		frame.CountWords(one.Progress.Scheduled, "scheduled message is", "scheduled messages are")+" being removed. "+frame.CountWords(one.Progress.Sent, "was", "were")+" sent it already.")
}

func acted(p *frame.Page, one client.Campaign, err error, done string) error {
	if err != nil {
		return err
	}
	return p.Done(done, p.Link("/campaigns/"+one.ID))
}

// showCampaignRecipients lists the recipients with their outcomes.
func showCampaignRecipients(p *frame.Page) error {
	one, err := p.API.Campaigns.Get(p.Context(), p.Param("id"))
	if err != nil {
		return err
	}
	v := runningView{Campaign: one}
	var found client.CampaignRecipientsPage
	err = p.List("/v1/campaigns/"+frame.PathPart(one.ID)+"/recipients", 100, &found, "outcome", "recipient", "page_token")
	v.Recipients, v.Next = found.Recipients, found.NextPageToken
	if err != nil {
		return p.ShowAgain(err, "campaignrecipients", frame.CampaignName(one)+": results by person", v)
	}
	return p.Show("campaignrecipients", frame.CampaignName(one)+": results by person", v)
}

// exportCampaign streams the recipients with their outcomes.
func exportCampaign(p *frame.Page) error {
	return p.Export("recipients", func(as client.Format, dialect string) (io.ReadCloser, error) {
		return p.API.Campaigns.ExportRecipients(p.Context(), p.Param("id"), client.ExportCampaignRecipientsOptions{Outcome: p.Query("outcome"), Dialect: dialect}, as)
	})
}
