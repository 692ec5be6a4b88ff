package campaigns

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// A schedule sends its pattern at its next time, so that a change of the pattern is more than a draft.
const patternsNeed = "Changing a draft that is the pattern of a schedule, even of a paused one, needs the scope campaigns:write."

var ofPattern = rest.Need{Scope: push.ScopeCampaignsWrite, When: "for a draft that is the pattern of a schedule"}

func (h *campaigns) routes(s *rest.Spec, sim *simulations) []rest.Operation {
	draft := campaignViewOf(exampleCampaign(broadcast.Draft))
	return []rest.Operation{{
		ID: "create-campaign", Method: http.MethodPost, Path: Path, Tag: Tag, Scope: push.ScopeCampaignsDraft, Serve: h.createCampaign,
		Summary: "Draft a campaign",
		Description: "Creates a draft: one message for everyone in an audience, which is uploaded next. Nothing is booked before the campaign is started.\n\n" +
			"With an Idempotency-Key, the request can be repeated safely: the same key and body return the same campaign, for as long as it exists.",
		Keyed: true, Body: campaignFields.Body(s, json.RawMessage(`{"name": "Black Friday", "channel": "push", "category": "marketing", "send_at": "2026-12-01T08:00:00Z", "local_time": null, "spread": "30m",
			"on_conflict": "defer", "latest": "2026-12-02T20:00:00Z", "expires_after": "4h",
			"message": {"title": "Hi {{ first_name | default: 'there' }}", "body": "Everything must go."}, "metadata": {}}`)),
		Status: http.StatusCreated, Answer: "The draft.", Example: draft, Problems: []rest.Kind{TooMany, rest.KeyReused},
		Finish: func(all map[string]*huma.Response) {
			rest.Etagged("201")(all)
			rest.AddHeader(all["201"], "Location", "The path of the campaign.")
			rest.AddHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the campaign.")
		},
	}, {
		ID: "list-campaigns", Method: http.MethodGet, Path: Path, Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.listCampaigns,
		Summary:     "List campaigns",
		Description: "Lists the campaigns of the tenant, the latest first. A page ends early at about 1 MiB, or after 10,000 campaigns were examined: the list continues while there is a next_page_token.",
		Query:       &campaignsParams, Status: http.StatusOK, Answer: "A page of campaigns.", Example: campaignsView{Campaigns: []campaignView{draft}},
	}, {
		ID: "get-campaign", Method: http.MethodGet, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.getCampaign, Memory: rest.PageBytes,
		Summary: "Read a campaign", Description: "Returns the campaign and its progress.",
		Status: http.StatusOK, Answer: "The campaign.", Example: campaignViewOf(exampleCampaign(broadcast.Running)), Problems: []rest.Kind{rest.NotFound}, Finish: rest.Etagged("200"),
	}, {
		ID: "change-campaign", Method: http.MethodPatch, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeCampaignsDraft, Also: ofPattern, Serve: h.changeCampaign,
		Summary: "Change a draft", Description: "Members that are not sent stay unchanged; null sets the default. Only a draft can be changed. " + patternsNeed,
		Match: true, Body: campaignChanges.Body(s, map[string]any{"spread": "1h"}),
		Status: http.StatusOK, Answer: "The draft.", Example: draft, Problems: []rest.Kind{rest.NotFound, State, rest.StaleVersion}, Finish: rest.Etagged("200"),
	}, {
		ID: "delete-campaign", Method: http.MethodDelete, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeCampaignsDraft, Serve: h.deleteCampaign, Memory: rest.PageBytes,
		Summary: "Delete a draft", Description: "Removes the draft and its audience. Only a draft can be deleted, and only if it is not the pattern of a schedule: detail names the schedules.",
		Status: http.StatusNoContent, Answer: "The draft is deleted.", Problems: []rest.Kind{rest.NotFound, State},
	}, {
		ID: "put-audience", Method: http.MethodPut, Path: Path + "/{id}/audience", Tag: Tag, Scope: push.ScopeCampaignsDraft, Also: ofPattern, Serve: h.putAudience,
		Summary: "Upload the audience of a draft",
		Description: "The body is CSV with a header, or NDJSON (one object per line), with any number of lines. Each line has a recipient, optionally an address in to, and a variable in every other column or member, " +
			"which in NDJSON is a string, a number, true, false or null. Columns are separated by commas, semicolons or tabs; there are at most 500. The text is UTF-8, or UTF-16 with a byte order mark; a line has at most 64 KiB. Columns without a name are ignored. " + lists.AboutLists + "\n\n" +
			"Lines with errors are rejected, and the others are accepted; if a recipient has several lines, the first one counts. The audience replaces the previous one only after the upload is complete. " + patternsNeed,
		Body: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"text/csv":             {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"recipient,to,first_name\nuser-42,+819012345678,Aiko\n"`)},
			"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"{\"recipient\": \"user-42\", \"first_name\": \"Aiko\"}\n"`)},
		}},
		Status: http.StatusOK, Answer: "The counts of the lines.",
		Example: audienceView{Rows: 3, Accepted: 1, Duplicates: 1, Rejected: 1, Errors: []lists.LineFault{{Line: 4, Message: "has 2 cells, and the header 3"}}}, Problems: []rest.Kind{rest.NotFound, State, pushes.TenantCap},
	}, {
		ID: "preview-campaign", Method: http.MethodPost, Path: Path + "/{id}/preview", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: sim.previewCampaign,
		Summary: "Preview messages of a campaign",
		Description: "Renders the messages of the first five lines of the audience, of the five longest, or of one recipient in it, with the current attributes of the recipients. An error would make the line invalid. " +
			"Nothing is booked, and no quota is checked.",
		Body: previewBody(s), Status: http.StatusOK, Answer: "The messages.", Example: previewsView{[]previewView{
			{Recipient: "user-42", Line: 2, Message: rest.RawObject(`{"title": "Hi Aiko", "body": "Everything must go."}`)},
			{Recipient: "user-43", Line: 3, Error: rest.MaybeText("message.title: there is no variable first_name; the filter default gives a value for that")},
		}}, Problems: []rest.Kind{rest.NotFound},
	}}
}
