package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

const refusalsPath = "/v1/refusals"

// refusalView is a push that was refused.
type refusalView struct {
	At              string     `json:"at" format:"date-time"`
	Recipient       string     `json:"recipient"`
	Channel         string     `json:"channel"`
	Category        string     `json:"category"`
	Campaign        *string    `json:"campaign" format:"uuid" nullable:"true"`
	RequestedSendAt *string    `json:"requested_send_at" format:"date-time" nullable:"true" doc:"null: at the time of the submit."`
	Reason          string     `json:"reason" doc:"The name of the problem, for example quota-exceeded."`
	Rules           []string   `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
	Conflicts       rawObjects `json:"conflicts" doc:"Some of the conflicting bookings, with id and send_at."`
}

func refusalViewOf(r push.RefusalRecord) refusalView {
	v := refusalView{
		At: stamp(r.At), Recipient: r.Recipient, Channel: r.Channel, Category: r.Category, Campaign: maybeID(r.Campaign), RequestedSendAt: maybe(r.RequestedSendAt),
		Reason: r.Reason, Rules: append([]string{}, r.Rules...), Conflicts: rawObjects(r.Conflicts),
	}
	if v.Conflicts == nil {
		v.Conflicts = rawObjects(`[]`)
	}
	return v
}

type refusalsView struct {
	Refusals      []refusalView `json:"refusals"`
	NextPageToken string        `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer refusals than page_size, or none."`
}

// refusalFilter is which refusals are asked for.
type refusalFilter struct {
	push.RefusalFilter
	pageParams
}

var refusalsParams = pages(
	row("recipient", optional, text(func(q *refusalFilter, s string) { q.Recipient = s }, 0, maxRecipient), "Only refusals of this recipient, including the last ones of single pushes.", "user-42"),
	row("campaign", optional, identifier(func(q *refusalFilter, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", exampleID),
	row("rule", optional, named(func(q *refusalFilter, s string) { q.Rule = s }, 0, maxCategory), "Only refusals by this rule, these quiet hours or this cap.", "per-day"),
	row("from", optional, moment(func(q *refusalFilter, t time.Time) { q.From = t }), "Only refusals at or after this time. RFC 3339 with a zone.", timeExample),
	row("until", optional, moment(func(q *refusalFilter, t time.Time) { q.Until = t }), "Only refusals before this time. RFC 3339 with a zone.", timeExample),
)

// listRefusals answers with a page of what was refused, the oldest first.
func (h *refusals) listRefusals(c *call) error {
	return list(c, &refusalsParams, func(q refusalFilter, after push.RefusalPosition) ([]push.RefusalRecord, *push.RefusalPosition, error) {
		page, err := h.svc.Refusals(c.r.Context(), c.caller.Tenant, q.RefusalFilter, after, q.size)
		return page.Refusals, page.Next, err
	}, func(all []push.RefusalRecord, next string) any {
		return refusalsView{viewsOf(all, refusalViewOf), next}
	})
}

func (h *refusals) routes(s *spec) []operation {
	at := exampleTime(0)
	return []operation{{
		id: "list-refusals", method: http.MethodGet, path: refusalsPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: h.listRefusals,
		summary: "List refusals",
		description: "Lists refusals, the oldest first: for campaigns, all refusals by the quota, a cap or an opt-out. With recipient, the list includes the last 20 refused single pushes of a week; they are stored in Redis only and are lost with it. " +
			"A page ends early after 10,000 refusals were examined: the list continues while there is a next_page_token.",
		query: &refusalsParams, status: http.StatusOK, answer: "A page of refusals.",
		example: refusalsView{Refusals: []refusalView{refusalViewOf(push.RefusalRecord{
			At: at.Add(-24 * time.Hour), Recipient: "user-42", Channel: "push", Category: "marketing", Campaign: uuid.MustParse(exampleID), RequestedSendAt: at,
			Reason: quotaExceeded.Name, Rules: []string{"per-minute"}, Conflicts: json.RawMessage(`[{"id": "` + exampleOtherID + `", "send_at": "` + stamp(at) + `"}]`),
		})}},
	}}
}
