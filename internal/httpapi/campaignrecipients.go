package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// outcomeView is what has become of a recipient of a campaign.
type outcomeView struct {
	Recipient string               `json:"recipient" doc:"Empty: the recipient was erased."`
	Line      int                  `json:"line" doc:"The line of the audience at which the recipient begins; the header of CSV is line 1."`
	Outcome   push.CampaignOutcome `json:"outcome" enum:"pending,scheduled,refused,opted_out,invalid,sent,failed,expired,canceled"`
	Push      *string              `json:"push" format:"uuid" nullable:"true" doc:"The push, if one was booked."`
	SendAt    *string              `json:"send_at" format:"date-time" nullable:"true" doc:"The push's send time; without a push, the requested one."`
	Reason    string               `json:"reason" doc:"Why no push was booked: the name of the problem that a submit would have got, or a description of what is invalid. Or why the push was not sent."`
	Rules     []string             `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
}

type outcomesView struct {
	Recipients    []outcomeView `json:"recipients"`
	NextPageToken string        `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer recipients than page_size, or none."`
}

func outcomeViewOf(r push.CampaignRecipient) outcomeView {
	return outcomeView{
		Recipient: r.Recipient, Line: r.Line, Outcome: r.Outcome, Push: maybeID(r.Push), SendAt: maybe(r.SendAt), Reason: r.Reason, Rules: append([]string{}, r.Rules...),
	}
}

// outcomeLines are the recipients of an export.
var outcomeLines = exported[outcomeView]{
	columns: []string{"recipient", "line", "outcome", "push", "send_at", "reason", "rules"},
	cells: func(v *outcomeView) []string {
		return []string{
			v.Recipient, strconv.Itoa(v.Line), string(v.Outcome), orBlank(v.Push), orBlank(v.SendAt), v.Reason, strings.Join(v.Rules, " "),
		}
	},
}

// outcomeFilter is which recipients of a campaign are asked for.
type outcomeFilter struct {
	push.CampaignRecipientFilter
	pageParams
}

var (
	outcomeField = row(
		"outcome", optional, oneOf(func(q *outcomeFilter, o push.CampaignOutcome) { q.Outcome = o }, push.CampaignOutcomes...), "Only recipients with this outcome.", nil,
	)
	outcomesParams = pages(outcomeField, row(
		"recipient", optional, text(func(q *outcomeFilter, s string) { q.Recipient = s }, 0, maxRecipient), "Only this recipient.", "user-42",
	))
	outcomesExportParams = table[outcomeFilter]{fields: []field[outcomeFilter]{outcomeField, dialectParam[outcomeFilter]()}}
)

// listCampaignRecipients answers with a page of a campaign's recipients, in the order of their lines.
func (h *campaigns) listCampaignRecipients(c *call) error {
	return list(c, &outcomesParams, func(q outcomeFilter, after int) ([]push.CampaignRecipient, *int, error) {
		page, err := h.svc.CampaignRecipients(c.r.Context(), c.caller.Tenant, c.id, q.CampaignRecipientFilter, after, q.size)
		return page.Recipients, orNowhere(page.Next), noSuch("campaign", err)
	}, func(all []push.CampaignRecipient, next string) any {
		return outcomesView{viewsOf(all, outcomeViewOf), next}
	})
}

// exportCampaignRecipients answers with all of them.
func (h *campaigns) exportCampaignRecipients(c *call) error {
	var (
		q     outcomeFilter
		after int
	)
	outcomesExportParams.readQuery(c.r, &q, &c.bad)
	if err := c.bad.err(); err != nil {
		return err
	}
	x := outcomeLines
	x.page = func(ctx context.Context) ([]outcomeView, bool, error) {
		page, err := h.svc.CampaignRecipients(ctx, c.caller.Tenant, c.id, q.CampaignRecipientFilter, after, exportPage)
		after = page.Next
		return viewsOf(page.Recipients, outcomeViewOf), page.Next > 0, noSuch("campaign", err)
	}
	return export(h.exports, c, x)
}

func (h *campaigns) recipientRoutes(s *spec) []operation {
	scheduled := outcomeViewOf(push.CampaignRecipient{Recipient: "user-42", Line: 2, Outcome: push.OutcomeScheduled, Push: uuid.MustParse(exampleOtherID), SendAt: exampleTime(0)})
	refused := outcomeViewOf(push.CampaignRecipient{Recipient: "user-43", Line: 3, Outcome: push.OutcomeRefused, SendAt: exampleTime(time.Minute), Reason: quotaExceeded.Name, Rules: []string{"per-day"}})
	return []operation{{
		id: "list-campaign-recipients", method: http.MethodGet, path: campaignsPath + "/{id}/recipients", tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: h.listCampaignRecipients,
		summary: "List the recipients of a campaign",
		description: "Lists the recipients and their outcomes, in the order of their lines. A page ends early after 10,000 recipients were examined: the list continues while there is a next_page_token. " +
			"After the end of the campaign, they are kept for as long as ended pushes.",
		query:  &outcomesParams,
		status: http.StatusOK, answer: "A page of recipients.", problems: []kind{notFound},
		example: outcomesView{Recipients: []outcomeView{scheduled, refused}},
	}, {
		id: "export-campaign-recipients", method: http.MethodGet, path: campaignsPath + "/{id}/export", tag: tagCampaigns, scope: push.ScopeCampaignsRead, serve: h.exportCampaignRecipients,
		summary: "Export the recipients of a campaign",
		description: "Streams all matching recipients as CSV with a header line (Accept: text/csv) or as NDJSON (application/x-ndjson, the default). " +
			"If the connection breaks off, the list is incomplete.\n\n" + aboutGuards,
		query:  &outcomesExportParams,
		status: http.StatusOK, answer: "The recipients, one per line.", example: "", problems: []kind{notFound, notAcceptable},
		finish: func(all map[string]*huma.Response) { exports(all, outcomeLines, scheduled) },
	}}
}
