package campaigns

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// outcomeView is the outcome of a recipient of a campaign.
type outcomeView struct {
	Recipient string            `json:"recipient" doc:"Empty: the recipient was erased."`
	Line      int               `json:"line" doc:"The line of the audience at which the recipient begins; the header of CSV is line 1."`
	Outcome   broadcast.Outcome `json:"outcome" enum:"pending,scheduled,refused,opted_out,invalid,sent,failed,expired,canceled"`
	Push      *string           `json:"push" format:"uuid" nullable:"true" doc:"The push, if one was booked."`
	SendAt    *string           `json:"send_at" format:"date-time" nullable:"true" doc:"The push's send time; without a push, the requested one."`
	Reason    string            `json:"reason" doc:"Why no push was booked: the name of the problem that a submit would have got, or a description of what is invalid. Or why the push was not sent."`
	Rules     []string          `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
}

type outcomesView struct {
	Recipients    []outcomeView `json:"recipients"`
	NextPageToken string        `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer recipients than page_size, or none."`
}

func outcomeViewOf(r broadcast.Recipient) outcomeView {
	return outcomeView{
		Recipient: r.Recipient, Line: r.Line, Outcome: r.Outcome, Push: rest.MaybeID(r.Push), SendAt: rest.MaybeTime(r.SendAt), Reason: r.Reason, Rules: append([]string{}, r.Rules...),
	}
}

// outcomeLines writes the recipients of an export.
var outcomeLines = lists.Rows[outcomeView]{
	Columns: []string{"recipient", "line", "outcome", "push", "send_at", "reason", "rules"},
	Cells: func(v *outcomeView) []string {
		return []string{
			v.Recipient, strconv.Itoa(v.Line), string(v.Outcome), rest.OrBlank(v.Push), rest.OrBlank(v.SendAt), v.Reason, strings.Join(v.Rules, " "),
		}
	},
}

// outcomeFilter selects recipients of a campaign.
type outcomeFilter struct {
	broadcast.RecipientFilter
	rest.PageParams
}

var (
	outcomeField = rest.Row(
		"outcome", rest.Optional, rest.OneOf(func(q *outcomeFilter, o broadcast.Outcome) { q.Outcome = o }, broadcast.Outcomes...), "Only recipients with this outcome.", nil,
	)
	outcomesParams = rest.Pages(outcomeField, rest.Row(
		"recipient", rest.Optional, rest.Text(func(q *outcomeFilter, s string) { q.Recipient = s }, 0, pushes.MaxRecipient), "Only this recipient.", "user-42",
	))
	outcomesExportParams = rest.Table[outcomeFilter]{Fields: []rest.Field[outcomeFilter]{outcomeField, lists.DialectParam[outcomeFilter]()}}
)

// listCampaignRecipients answers with a page of a campaign's recipients, in the order of their lines.
func (h *campaigns) listCampaignRecipients(c *rest.Call) error {
	return rest.List(c, &outcomesParams, func(q outcomeFilter, after int) ([]broadcast.Recipient, *int, error) {
		page, err := h.svc.CampaignRecipients(c.Request.Context(), c.Caller.Tenant, c.ID, q.RecipientFilter, after, q.Size)
		return page.Recipients, rest.OrNowhere(page.Next), rest.NoSuch("campaign", err)
	}, func(all []broadcast.Recipient, next string) any {
		return outcomesView{rest.ViewsOf(all, outcomeViewOf), next}
	})
}

// exportCampaignRecipients streams the recipients of a campaign.
func (h *campaigns) exportCampaignRecipients(c *rest.Call) error {
	var (
		q     outcomeFilter
		after int
	)
	outcomesExportParams.ReadQuery(c.Request, &q, &c.Errors)
	if err := c.Errors.Err(); err != nil {
		return err
	}
	x := outcomeLines
	x.Page = func(ctx context.Context) ([]outcomeView, bool, error) {
		page, err := h.svc.CampaignRecipients(ctx, c.Caller.Tenant, c.ID, q.RecipientFilter, after, lists.ExportPage)
		after = page.Next
		return rest.ViewsOf(page.Recipients, outcomeViewOf), page.Next > 0, rest.NoSuch("campaign", err)
	}
	return lists.Export(h.exports, c, x)
}

func (h *campaigns) recipientRoutes(s *rest.Spec) []rest.Operation {
	scheduled := outcomeViewOf(broadcast.Recipient{Recipient: "user-42", Line: 2, Outcome: broadcast.OutcomeScheduled, Push: uuid.MustParse(rest.ExampleOtherID), SendAt: rest.ExampleTime(0)})
	refused := outcomeViewOf(broadcast.Recipient{Recipient: "user-43", Line: 3, Outcome: broadcast.OutcomeRefused, SendAt: rest.ExampleTime(time.Minute), Reason: pushes.QuotaExceeded.Name, Rules: []string{"per-day"}})
	return []rest.Operation{{
		ID: "list-campaign-recipients", Method: http.MethodGet, Path: Path + "/{id}/recipients", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.listCampaignRecipients,
		Summary: "List the recipients of a campaign",
		Description: "Lists the recipients and their outcomes, in the order of their lines. A page ends early after 10,000 recipients were examined: the list continues while there is a next_page_token. " +
			"After the end of the campaign, they are kept for as long as ended pushes.",
		Query:  &outcomesParams,
		Status: http.StatusOK, Answer: "A page of recipients.", Problems: []rest.Kind{rest.NotFound},
		Example: outcomesView{Recipients: []outcomeView{scheduled, refused}},
	}, {
		ID: "export-campaign-recipients", Method: http.MethodGet, Path: Path + "/{id}/export", Tag: Tag, Scope: push.ScopeCampaignsRead, Serve: h.exportCampaignRecipients,
		Summary: "Export the recipients of a campaign",
		Description: "Streams all matching recipients as CSV with a header line (Accept: text/csv) or as NDJSON (application/x-ndjson, the default). " +
			"If the connection breaks off, the list is incomplete.\n\n" + lists.AboutGuards,
		Query:  &outcomesExportParams,
		Status: http.StatusOK, Answer: "The recipients, one per line.", Example: "", Problems: []rest.Kind{rest.NotFound, rest.NotAcceptable},
		Finish: func(all map[string]*huma.Response) { lists.DocumentExport(all, outcomeLines, scheduled) },
	}}
}
