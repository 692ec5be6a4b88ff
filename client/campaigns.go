package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"
)

// CreateCampaign makes a draft, which has no audience yet. With the same key and the same campaign, a second call returns
// the draft of the first; an empty key is a new one.
func (c *Client) CreateCampaign(ctx context.Context, key string, p NewCampaign) (Campaign, error) {
	return ask[Campaign](ctx, c, call{method: http.MethodPost, path: path("campaigns"), body: p}.keyed(key))
}

// ChangeCampaign changes what is not nil in a draft; Null is the default. A campaign that was started is a *CampaignState,
// as it is for every call that goes with another state.
func (c *Client) ChangeCampaign(ctx context.Context, id string, to CampaignChange) (Campaign, error) {
	return c.ChangeCampaignAsOf(ctx, id, time.Time{}, to)
}

// ChangeCampaignAsOf is ChangeCampaign for the draft as it was when it was last changed then: if somebody else has changed it since,
// it fails with status 412 (stale-version), and nothing changes.
func (c *Client) ChangeCampaignAsOf(ctx context.Context, id string, updatedAt time.Time, to CampaignChange) (Campaign, error) {
	return ask[Campaign](ctx, c, call{method: http.MethodPatch, path: path("campaigns", id), body: to, repeat: true}.asOf(updatedAt))
}

// DeleteCampaign removes a draft. A repetition after a lost answer fails with status 404.
func (c *Client) DeleteCampaign(ctx context.Context, id string) error {
	return c.tell(ctx, call{method: http.MethodDelete, path: path("campaigns", id), repeat: true})
}

// Campaign reads a campaign with its progress, which adds up at every moment.
func (c *Client) Campaign(ctx context.Context, id string) (Campaign, error) {
	return ask[Campaign](ctx, c, call{method: http.MethodGet, path: path("campaigns", id), repeat: true})
}

// Campaigns lists the campaigns, the latest first; with a status, those in it.
func (c *Client) Campaigns(ctx context.Context, status CampaignStatus) iter.Seq2[Campaign, error] {
	query := params{"status": string(status), "page_size": pageSize}
	return list(ctx, c, path("campaigns"), query.values(), func(p CampaignsPage) ([]Campaign, string) { return p.Campaigns, p.NextPageToken })
}

// PutAudience replaces the recipients of a draft by lines, of any number, once they have arrived whole. It is made again
// only if the lines can be read again, as those of a file can.
func (c *Client) PutAudience(ctx context.Context, id string, lines io.Reader, f Format) (Audience, error) {
	return ask[Audience](ctx, c, call{method: http.MethodPut, path: path("campaigns", id, "audience"), upload: lines, media: string(f), repeat: true})
}

// Preview renders the messages of the first lines, or of one recipient.
func (c *Client) Preview(ctx context.Context, id, recipient string) (Previews, error) {
	return ask[Previews](ctx, c, call{method: http.MethodPost, path: path("campaigns", id, "preview"), body: PreviewForm{Recipient: recipient}, repeat: true})
}

// PreviewLongest renders the messages of the lines whose variables have the most text.
func (c *Client) PreviewLongest(ctx context.Context, id string) (Previews, error) {
	return ask[Previews](ctx, c, call{method: http.MethodPost, path: path("campaigns", id, "preview"), body: PreviewForm{Longest: true}, repeat: true})
}

// StartCampaign starts a draft; once more does nothing more.
func (c *Client) StartCampaign(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "start", time.Time{})
}

// StartCampaignAsOf is StartCampaign for the draft as it was when it was last changed then, as it was simulated, say: if somebody else
// has changed it since, it fails with status 412 (stale-version), and nothing starts.
func (c *Client) StartCampaignAsOf(ctx context.Context, id string, updatedAt time.Time) (Campaign, error) {
	return c.turn(ctx, id, "start", updatedAt)
}

// PauseCampaign holds a campaign: from two seconds after the answer on, nothing begins to be sent. Once more does nothing
// more.
func (c *Client) PauseCampaign(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "pause", time.Time{})
}

// ResumeCampaign has a campaign go on that was paused. Once more does nothing more.
func (c *Client) ResumeCampaign(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "resume", time.Time{})
}

// CancelCampaign ends a campaign, and gives back the places of what was not sent. Once more does nothing more.
func (c *Client) CancelCampaign(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "cancel", time.Time{})
}

func (c *Client) turn(ctx context.Context, id, action string, updatedAt time.Time) (Campaign, error) {
	return ask[Campaign](ctx, c, call{method: http.MethodPost, path: path("campaigns", id, action), repeat: true}.asOf(updatedAt))
}

// CampaignRecipients lists the recipients of a campaign with what became of them; with an outcome, those of it.
func (c *Client) CampaignRecipients(ctx context.Context, id, outcome string) iter.Seq2[CampaignRecipient, error] {
	query := params{"outcome": outcome, "page_size": pageSize}
	return list(ctx, c, path("campaigns", id, "recipients"), query.values(), func(p CampaignRecipientsPage) ([]CampaignRecipient, string) {
		return p.Recipients, p.NextPageToken
	})
}

// CampaignRecipient is what became of one recipient of a campaign; false: the campaign has no such recipient.
func (c *Client) CampaignRecipient(ctx context.Context, id, recipient string) (r CampaignRecipient, has bool, err error) {
	var page CampaignRecipientsPage
	err = c.Get(ctx, path("campaigns", id, "recipients"), params{"recipient": recipient}.values(), &page)
	if err != nil || len(page.Recipients) == 0 {
		return r, false, err
	}
	return page.Recipients[0], true, nil
}

// ExportCampaign streams the recipients of a campaign with what became of them. The caller closes the stream. It breaks off
// with an error if not all could be sent.
func (c *Client) ExportCampaign(ctx context.Context, id string, f Format) (io.ReadCloser, error) {
	return c.ExportCampaignOutcome(ctx, id, "", f)
}

// ExportCampaignOutcome is ExportCampaign for the recipients with an outcome.
func (c *Client) ExportCampaignOutcome(ctx context.Context, id, outcome string, f Format) (io.ReadCloser, error) {
	return c.stream(ctx, path("campaigns", id, "export"), params{"outcome": outcome}.values(), f)
}
