package records

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/record"
	"github.com/sendquota/sendquota/internal/rest"
)

const refusalsPath = "/v1/refusals"

// refusalView is a refused push.
type refusalView struct {
	At              string          `json:"at" format:"date-time"`
	Recipient       string          `json:"recipient"`
	Channel         string          `json:"channel"`
	Category        string          `json:"category"`
	Campaign        *string         `json:"campaign" format:"uuid" nullable:"true"`
	RequestedSendAt *string         `json:"requested_send_at" format:"date-time" nullable:"true" doc:"null: at the time of the submit."`
	Reason          string          `json:"reason" doc:"The name of the problem, for example quota-exceeded."`
	Rules           []string        `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
	Conflicts       rest.RawObjects `json:"conflicts" doc:"Some of the conflicting bookings, with id and send_at."`
}

func refusalViewOf(r record.Refusal) refusalView {
	v := refusalView{
		At: rest.Stamp(r.At), Recipient: r.Recipient, Channel: r.Channel, Category: r.Category, Campaign: rest.MaybeID(r.Campaign), RequestedSendAt: rest.MaybeTime(r.RequestedSendAt),
		Reason: r.Reason, Rules: append([]string{}, r.Rules...), Conflicts: rest.RawObjects(r.Conflicts),
	}
	if v.Conflicts == nil {
		v.Conflicts = rest.RawObjects(`[]`)
	}
	return v
}

type refusalsView struct {
	Refusals      []refusalView `json:"refusals"`
	NextPageToken string        `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer refusals than page_size, or none."`
}

// refusalFilter selects refusals.
type refusalFilter struct {
	record.RefusalFilter
	rest.PageParams
}

var refusalsParams = rest.Pages(
	rest.Row("recipient", rest.Optional, rest.Text(func(q *refusalFilter, s string) { q.Recipient = s }, 0, pushes.MaxRecipient), "Only refusals of this recipient, including the last ones of single pushes.", "user-42"),
	rest.Row("campaign", rest.Optional, rest.Identifier(func(q *refusalFilter, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", rest.ExampleID),
	rest.Row("rule", rest.Optional, rest.Named(func(q *refusalFilter, s string) { q.Rule = s }, 0, pushes.MaxCategory), "Only refusals by this rule, these quiet hours or this cap.", "per-day"),
	rest.Row("from", rest.Optional, rest.Moment(func(q *refusalFilter, t time.Time) { q.From = t }), "Only refusals at or after this time. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *refusalFilter, t time.Time) { q.Until = t }), "Only refusals before this time. RFC 3339 with a zone.", rest.TimeExample),
)

// listRefusals answers with a page of refusals, the oldest first.
func (h *refusals) listRefusals(c *rest.Call) error {
	return rest.List(c, &refusalsParams, func(q refusalFilter, after record.RefusalPosition) ([]record.Refusal, *record.RefusalPosition, error) {
		page, err := h.svc.Refusals(c.Request.Context(), c.Caller.Tenant, q.RefusalFilter, after, q.Size)
		return page.Refusals, page.Next, err
	}, func(all []record.Refusal, next string) any {
		return refusalsView{rest.ViewsOf(all, refusalViewOf), next}
	})
}

func (h *refusals) routes(s *rest.Spec) []rest.Operation {
	at := rest.ExampleTime(0)
	return []rest.Operation{{
		ID: "list-refusals", Method: http.MethodGet, Path: refusalsPath, Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.listRefusals,
		Summary: "List refusals",
		Description: "Lists refusals, the oldest first: for campaigns, all refusals by the quota, a cap or an opt-out. With recipient, the list includes the last 20 refused single pushes of a week; they are stored in Redis only and are lost with it. " +
			"A page ends early after 10,000 refusals were examined: the list continues while there is a next_page_token.",
		Query: &refusalsParams, Status: http.StatusOK, Answer: "A page of refusals.",
		Example: refusalsView{Refusals: []refusalView{refusalViewOf(record.Refusal{
			At: at.Add(-24 * time.Hour), Recipient: "user-42", Channel: "push", Category: "marketing", Campaign: uuid.MustParse(rest.ExampleID), RequestedSendAt: at,
			Reason: pushes.QuotaExceeded.Name, Rules: []string{"per-minute"}, Conflicts: json.RawMessage(`[{"id": "` + rest.ExampleOtherID + `", "send_at": "` + rest.Stamp(at) + `"}]`),
		})}},
	}}
}
