package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// actOnCampaign serves an action: it answers with the campaign as it is then.
func (a *api) actOnCampaign(action push.CampaignAction) func(*call) error {
	return func(c *call) error {
		return a.byID(c, "campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
			p, err := a.cfg.Campaigns.Act(ctx, tenant, id, action, c.unchanged)
			c.tag(p.UpdatedAt, err)
			return campaignViewOf(p), err
		})
	}
}

func (a *api) campaignActionRoutes(s *spec) []operation {
	var all []operation
	for _, one := range []struct {
		action               push.CampaignAction
		to                   push.CampaignStatus
		summary, description string
	}{
		{push.CampaignStart, push.CampaignStarting, "Start a campaign", "Has the recipients of a draft booked, by workers: its progress says how far they are. " +
			"Each recipient is decided once, by the quota as it is then. A send_at, local_time or latest that has passed since the draft was made is a 422: change it first. Starting it again changes nothing."},
		{push.CampaignPause, push.CampaignPausing, "Pause a campaign", "From two seconds after the answer no attempt begins, and no recipient is booked. What is booked keeps its places; what expires meanwhile has expired. " +
			"Its pushes can be canceled and moved one by one."},
		{push.CampaignResume, push.CampaignRunning, "Resume a campaign", "What fell due in the pause is sent now, as the quota allows; the rest at its time. Recipients that were not booked before the pause are booked now."},
		{push.CampaignCancel, push.CampaignCanceling, "Cancel a campaign", "From two seconds after the answer no attempt begins. What waits is canceled and gives its places back, which takes a while: then the campaign is canceled. " +
			"An attempt under way ends as it will, and is not repeated. A draft cannot be canceled, but deleted."},
	} {
		all = append(all, operation{
			id: string(one.action) + "-campaign", method: http.MethodPost, path: campaignsPath + "/{id}/" + string(one.action), tag: tagCampaigns, scope: push.ScopeCampaignsWrite,
			serve: a.actOnCampaign(one.action), memory: pageBytes, summary: one.summary, description: one.description, match: true,
			status: http.StatusAccepted, answer: "The campaign as it is now.", example: campaignViewOf(exampleCampaign(one.to)), problems: []kind{notFound, campaignState, staleVersion}, finish: etagged("202"),
		})
	}
	return append(all, a.campaignRecipientRoutes(s)...)
}
