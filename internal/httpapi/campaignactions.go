package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// actOnCampaign serves an action: it answers with the campaign as it is then.
func (h *campaigns) actOnCampaign(action push.CampaignAction) func(*call) error {
	return func(c *call) error {
		return c.byID("campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
			p, err := h.svc.Act(ctx, tenant, id, action, c.unchanged)
			c.tag(p.UpdatedAt, err)
			return campaignViewOf(p), err
		})
	}
}

func (h *campaigns) actionRoutes(s *spec) []operation {
	var all []operation
	for _, one := range []struct {
		action               push.CampaignAction
		to                   push.CampaignStatus
		summary, description string
	}{
		{push.CampaignStart, push.CampaignStarting, "Start a campaign", "Starts the booking of a draft's recipients by the workers; progress counts them. " +
			"Each recipient is decided once, by the quota at that moment. A send_at, local_time or latest that has passed since the draft was created is a 422: change it first. Starting a campaign again changes nothing."},
		{push.CampaignPause, push.CampaignPausing, "Pause a campaign", "From two seconds after the answer on, no attempt begins, and no recipient is booked. Booked pushes keep their places; they expire at their usual time. " +
			"Single pushes of the campaign can be canceled and moved."},
		{push.CampaignResume, push.CampaignRunning, "Resume a campaign", "Pushes that became due during the pause are sent now, as the quota allows; the others at their time. Recipients that were not booked before the pause are booked now."},
		{push.CampaignCancel, push.CampaignCanceling, "Cancel a campaign", "From two seconds after the answer on, no attempt begins. Waiting pushes are canceled and give back their places, which takes a while; then the campaign is canceled. " +
			"An attempt in progress is finished, and is not repeated. A draft cannot be canceled, but can be deleted."},
	} {
		all = append(all, operation{
			id: string(one.action) + "-campaign", method: http.MethodPost, path: campaignsPath + "/{id}/" + string(one.action), tag: tagCampaigns, scope: push.ScopeCampaignsWrite,
			serve: h.actOnCampaign(one.action), memory: pageBytes, summary: one.summary, description: one.description, match: true,
			status: http.StatusAccepted, answer: "The current state of the campaign.", example: campaignViewOf(exampleCampaign(one.to)), problems: []kind{notFound, campaignState, staleVersion}, finish: etagged("202"),
		})
	}
	return all
}
