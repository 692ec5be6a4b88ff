package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

const refusalsPath = "/v1/refusals"

// refusalView is a push that was refused.
type refusalView struct {
	At              string          `json:"at" format:"date-time"`
	Recipient       string          `json:"recipient"`
	Channel         string          `json:"channel"`
	Category        string          `json:"category"`
	Campaign        *string         `json:"campaign" format:"uuid" nullable:"true"`
	RequestedSendAt *string         `json:"requested_send_at" format:"date-time" nullable:"true" doc:"null: as soon as it was submitted."`
	Reason          string          `json:"reason" doc:"The name of the problem, such as quota-exceeded."`
	Rules           []string        `json:"rules" doc:"The rules, quiet hours or caps that have refused it."`
	Conflicts       json.RawMessage `json:"conflicts"`
}

// TransformSchema says what conflicts are.
func (*refusalView) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["conflicts"] = &huma.Schema{
		Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}, Description: "Some of the bookings that were in the way, by id and send_at.",
	}
	return s
}

func refusalViewOf(r push.RefusalRecord) refusalView {
	v := refusalView{
		At: stamp(r.At), Recipient: r.Recipient, Channel: r.Channel, Category: r.Category, Campaign: maybeID(r.Campaign), RequestedSendAt: maybe(r.RequestedSendAt),
		Reason: r.Reason, Rules: append([]string{}, r.Rules...), Conflicts: r.Conflicts,
	}
	if v.Conflicts == nil {
		v.Conflicts = json.RawMessage(`[]`)
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

var refusalsParams = table[refusalFilter]{fields: []field[refusalFilter]{
	{"recipient", optional, text(func(q *refusalFilter, s string) { q.Recipient = s }, 0, maxRecipient), "Only this recipient's, and then the last ones of single pushes, too.", "user-42"},
	{"campaign", optional, identifier(func(q *refusalFilter, id uuid.UUID) { q.Campaign = id }), "Only those of this campaign.", exampleID},
	{"rule", optional, text(func(q *refusalFilter, s string) { q.Rule = s }, 0, maxCategory), "Only those by this rule, these quiet hours or this cap.", "per-day"},
	{"from", optional, moment(func(q *refusalFilter, t time.Time) { q.From = t }), "Only those not before this. RFC 3339 with a zone.", timeExample},
	{"until", optional, moment(func(q *refusalFilter, t time.Time) { q.Until = t }), "Only those before this. RFC 3339 with a zone.", timeExample},
	{"page_size", optional, integer(func(q *refusalFilter, n int) { q.size = n }, 1, maxPageSize).or(defaultPageSize), "How many refusals to answer with, at most.", nil},
	{"page_token", optional, token(func(q *refusalFilter, s string) { q.token = s }), "The next_page_token of the page before. It goes with the same filters.", nil},
}}

// listName tells lists with other filters apart.
func (q *refusalFilter) listName() string {
	return fmt.Sprintf("refusals %q %s %q %s %s", q.Recipient, q.Campaign, q.Rule, stamp(q.From), stamp(q.Until))
}

// refusalCursor is a position in a list of refusals, as a page token holds it.
type refusalCursor struct {
	At       int64 // Unix microseconds
	Campaign uuid.UUID
	Line     int64
}

// listRefusals answers with a page of what was refused, the oldest first.
func (a *api) listRefusals(c *call) error {
	var (
		bad    fieldErrors
		q      refusalFilter
		cursor refusalCursor
	)
	refusalsParams.readQuery(c.r, &q, &bad)
	readPageToken(q.token, c.caller.Tenant, q.listName, &cursor, &bad)
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	after := push.RefusalPosition{At: time.UnixMicro(cursor.At).UTC(), Campaign: cursor.Campaign, Line: int(cursor.Line)}
	page, err := a.svc.Refusals(c.r.Context(), c.caller.Tenant, q.RefusalFilter, after, q.size)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		v := refusalsView{Refusals: viewsOf(page.Refusals, refusalViewOf)}
		if n := page.Next; n != nil {
			v.NextPageToken = pageToken(refusalCursor{n.At.UnixMicro(), n.Campaign, int64(n.Line)}, c.caller.Tenant, q.listName())
		}
		return a.answer(c.w, http.StatusOK, v)
	})
}
