package campaigns

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// actOnCampaign serves an action. It answers with the new state of the campaign.
func (h *campaigns) actOnCampaign(action broadcast.Action) func(*rest.Call) error {
	return func(c *rest.Call) error {
		return c.ByID("campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
			p, err := h.svc.Act(ctx, tenant, id, action, c.Unchanged)
			c.Tag(p.UpdatedAt, err)
			return campaignViewOf(p), err
		})
	}
}

func (h *campaigns) actionRoutes(s *rest.Spec) []rest.Operation {
	var all []rest.Operation
	for _, one := range []struct {
		action               broadcast.Action
		to                   broadcast.Status
		summary, description string
	}{
		{broadcast.Start, broadcast.Starting, "Start a campaign", "Starts the booking of a draft's recipients by the workers; progress counts them. " +
			"Each recipient is decided once, by the quota at that moment. A send_at, local_time or latest that has passed since the draft was created is a 422: change it first. Starting a campaign again changes nothing."},
		{broadcast.Pause, broadcast.Pausing, "Pause a campaign", "From two seconds after the answer on, no attempt begins, and no recipient is booked. Booked pushes keep their places; they expire at their usual time. " +
			"Single pushes of the campaign can be canceled and moved."},
		{broadcast.Resume, broadcast.Running, "Resume a campaign", "Pushes that became due during the pause are sent now, as the quota allows; the others at their time. Recipients that were not booked before the pause are booked now."},
		{broadcast.Cancel, broadcast.Canceling, "Cancel a campaign", "From two seconds after the answer on, no attempt begins. Waiting pushes are canceled and give back their places, which takes a while; then the campaign is canceled. " +
			"An attempt in progress is finished, and is not repeated. A draft cannot be canceled, but can be deleted."},
	} {
		all = append(all, rest.Operation{
			ID: string(one.action) + "-campaign", Method: http.MethodPost, Path: Path + "/{id}/" + string(one.action), Tag: Tag, Scope: push.ScopeCampaignsWrite,
			Serve: h.actOnCampaign(one.action), Memory: rest.PageBytes, Summary: one.summary, Description: one.description, Match: true,
			Status: http.StatusAccepted, Answer: "The current state of the campaign.", Example: campaignViewOf(exampleCampaign(one.to)), Problems: []rest.Kind{rest.NotFound, State, rest.StaleVersion}, Finish: rest.Etagged("202"),
		})
	}
	return all
}
