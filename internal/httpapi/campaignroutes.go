package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
)

func (a *api) campaignRoutes(s *spec) []operation {
	draft := campaignViewOf(exampleCampaign(push.CampaignDraft))
	return []operation{{
		id: "create-campaign", method: http.MethodPost, path: campaignsPath, tag: tagCampaigns, scope: push.ScopeCampaignsWrite, serve: a.createCampaign,
		summary: "Draft a campaign",
		description: "Makes a draft: one message, for everybody in an audience that is sent next. Nothing is booked before it is started.\n\n" +
			"With an Idempotency-Key the request can be repeated safely: the same key and body get the same campaign, for as long as there is one.",
		params: []*huma.Param{idempotencyKey()}, body: campaignFields.body(s, exampleNewCampaign()),
		status: http.StatusCreated, answer: "The draft.", example: draft, problems: []kind{tooManyCampaigns, keyReused},
		finish: func(all map[string]*huma.Response) {
			addHeader(all["201"], "Location", "The path of the campaign.")
			addHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key made the campaign.")
		},
	}, {
		id: "list-campaigns", method: http.MethodGet, path: campaignsPath, tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: a.listCampaigns,
		summary:     "List campaigns",
		description: "Lists the campaigns of the tenant, the latest first. A page ends early at about 1 MiB, and when 10,000 campaigns were examined: the list continues while there is a next_page_token.",
		params:      campaignsParams.parameters(s), status: http.StatusOK, answer: "A page of campaigns.", example: campaignsView{Campaigns: []campaignView{draft}},
	}, {
		id: "get-campaign", method: http.MethodGet, path: campaignsPath + "/{id}", tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: a.getCampaign,
		summary: "Read a campaign", description: "Answers with the campaign and its progress.", params: []*huma.Param{campaignID()},
		status: http.StatusOK, answer: "The campaign.", example: campaignViewOf(exampleCampaign(push.CampaignRunning)), problems: []kind{notFound},
	}, {
		id: "change-campaign", method: http.MethodPatch, path: campaignsPath + "/{id}", tag: tagCampaigns, scope: push.ScopeCampaignsWrite, serve: a.changeCampaign,
		summary: "Change a draft", description: "What is not sent stays as it is; null is the default. Only a draft can be changed.",
		params: []*huma.Param{campaignID()}, body: campaignChanges.body(s, map[string]any{"spread": "1h"}),
		status: http.StatusOK, answer: "The draft.", example: draft, problems: []kind{notFound, campaignState},
	}, {
		id: "delete-campaign", method: http.MethodDelete, path: campaignsPath + "/{id}", tag: tagCampaigns, scope: push.ScopeCampaignsWrite, serve: a.deleteCampaign,
		summary: "Delete a draft", description: "Removes the draft and its audience. Only a draft can be deleted.",
		params: []*huma.Param{campaignID()}, status: http.StatusNoContent, answer: "The draft is deleted.", problems: []kind{notFound, campaignState},
	}}
}

func campaignID() *huma.Param { return pathID("id", "The campaign's id.", exampleID) }
