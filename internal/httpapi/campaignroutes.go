package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
)

// A schedule sends what its pattern says at its next time, so that a change of the pattern is no draft any more.
const patternsNeed = "Changing a draft that is the pattern of a schedule, even of a paused one, needs the scope campaigns:write."

var ofPattern = need{scope: push.ScopeCampaignsWrite, when: "for a draft that is the pattern of a schedule"}

func (h *campaigns) routes(s *spec, sim *simulations) []operation {
	draft := campaignViewOf(exampleCampaign(push.CampaignDraft))
	return []operation{{
		id: "create-campaign", method: http.MethodPost, path: campaignsPath, tag: tagCampaigns, scope: push.ScopeCampaignsDraft, serve: h.createCampaign,
		summary: "Draft a campaign",
		description: "Creates a draft: one message for everyone in an audience, which is uploaded next. Nothing is booked before the campaign is started.\n\n" +
			"With an Idempotency-Key, the request can be repeated safely: the same key and body return the same campaign, for as long as it exists.",
		keyed: true, body: campaignFields.body(s, json.RawMessage(`{"name": "Black Friday", "channel": "push", "category": "marketing", "send_at": "2026-12-01T08:00:00Z", "local_time": null, "spread": "30m",
			"on_conflict": "defer", "latest": "2026-12-02T20:00:00Z", "expires_after": "4h",
			"message": {"title": "Hi {{ first_name | default: 'there' }}", "body": "Everything must go."}, "metadata": {}}`)),
		status: http.StatusCreated, answer: "The draft.", example: draft, problems: []kind{tooManyCampaigns, keyReused},
		finish: func(all map[string]*huma.Response) {
			etagged("201")(all)
			addHeader(all["201"], "Location", "The path of the campaign.")
			addHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the campaign.")
		},
	}, {
		id: "list-campaigns", method: http.MethodGet, path: campaignsPath, tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: h.listCampaigns,
		summary:     "List campaigns",
		description: "Lists the campaigns of the tenant, the latest first. A page ends early at about 1 MiB, or after 10,000 campaigns were examined: the list continues while there is a next_page_token.",
		query:       &campaignsParams, status: http.StatusOK, answer: "A page of campaigns.", example: campaignsView{Campaigns: []campaignView{draft}},
	}, {
		id: "get-campaign", method: http.MethodGet, path: campaignsPath + "/{id}", tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: h.getCampaign, memory: pageBytes,
		summary: "Read a campaign", description: "Returns the campaign and its progress.",
		status: http.StatusOK, answer: "The campaign.", example: campaignViewOf(exampleCampaign(push.CampaignRunning)), problems: []kind{notFound}, finish: etagged("200"),
	}, {
		id: "change-campaign", method: http.MethodPatch, path: campaignsPath + "/{id}", tag: tagCampaigns, scope: push.ScopeCampaignsDraft, also: ofPattern, serve: h.changeCampaign,
		summary: "Change a draft", description: "Members that are not sent stay unchanged; null sets the default. Only a draft can be changed. " + patternsNeed,
		match: true, body: campaignChanges.body(s, map[string]any{"spread": "1h"}),
		status: http.StatusOK, answer: "The draft.", example: draft, problems: []kind{notFound, campaignState, staleVersion}, finish: etagged("200"),
	}, {
		id: "delete-campaign", method: http.MethodDelete, path: campaignsPath + "/{id}", tag: tagCampaigns, scope: push.ScopeCampaignsDraft, serve: h.deleteCampaign, memory: pageBytes,
		summary: "Delete a draft", description: "Removes the draft and its audience. Only a draft can be deleted, and only if it is not the pattern of a schedule: detail names the schedules.",
		status: http.StatusNoContent, answer: "The draft is deleted.", problems: []kind{notFound, campaignState},
	}, {
		id: "put-audience", method: http.MethodPut, path: campaignsPath + "/{id}/audience", tag: tagCampaigns, scope: push.ScopeCampaignsDraft, also: ofPattern, serve: h.putAudience,
		summary: "Upload the audience of a draft",
		description: "The body is CSV with a header, or NDJSON (one object per line), with any number of lines. Each line has a recipient, optionally an address in to, and a variable in every other column or member, " +
			"which in NDJSON is a string, a number, true, false or null. Columns are separated by commas, semicolons or tabs; there are at most 500. The text is UTF-8, or UTF-16 with a byte order mark; a line has at most 64 KiB. Columns without a name are ignored. " + aboutLists + "\n\n" +
			"Lines with errors are rejected, and the others are accepted; if a recipient has several lines, the first one counts. The audience replaces the previous one only after the upload is complete. " + patternsNeed,
		body: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"text/csv":             {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"recipient,to,first_name\nuser-42,+819012345678,Aiko\n"`)},
			"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"{\"recipient\": \"user-42\", \"first_name\": \"Aiko\"}\n"`)},
		}},
		status: http.StatusOK, answer: "The counts of the lines.",
		example: audienceView{Rows: 3, Accepted: 1, Duplicates: 1, Rejected: 1, Errors: []lineFault{{Line: 4, Message: "has 2 cells, and the header 3"}}}, problems: []kind{notFound, campaignState, tenantCap},
	}, {
		id: "preview-campaign", method: http.MethodPost, path: campaignsPath + "/{id}/preview", tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: sim.previewCampaign,
		summary: "Preview messages of a campaign",
		description: "Renders the messages of the first five lines of the audience, of the five longest, or of one recipient in it, with the current attributes of the recipients. An error would make the line invalid. " +
			"Nothing is booked, and no quota is checked.",
		body: previewBody(s), status: http.StatusOK, answer: "The messages.", example: previewsView{[]previewView{
			{"user-42", 2, "", rawObject(`{"title": "Hi Aiko", "body": "Everything must go."}`), nil},
			{"user-43", 3, "", nil, maybeText("message.title: there is no variable first_name; the filter default gives a value for that")},
		}}, problems: []kind{notFound},
	}}
}
