package httpapi

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// maxReason is the longest last_error in a filter, in bytes.
const maxReason = 1024

// pageView is a page of pushes.
type pageView struct {
	Pushes        []*pushView `json:"pushes"`
	NextPageToken string      `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer pushes than page_size, or none."`
}

// pushFilter is which pushes are asked for.
type pushFilter struct {
	push.Filter
	pageParams
}

var listParams = pages(
	row("recipient", optional, text(func(q *pushFilter, s string) { q.Recipient = s }, 0, maxRecipient), "Only entries of this recipient.", "user-42"),
	row("status", optional, oneOf(func(q *pushFilter, s push.Status) { q.Status = s }, push.Statuses...), "Only pushes with this status.", nil),
	row("channel", optional, named(func(q *pushFilter, s string) { q.Channel = s }, 0, maxChannel), "Only pushes on this channel.", "push"),
	row("category", optional, named(func(q *pushFilter, s string) { q.Category = s }, 0, maxCategory), "Only pushes of this category.", "marketing"),
	row("campaign", optional, identifier(func(q *pushFilter, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", exampleID),
	row("reason", optional, text(func(q *pushFilter, s string) { q.Reason = s }, 0, maxReason), "Only pushes with exactly this last_error.", "the provider answered 404"),
	row("from", optional, moment(func(q *pushFilter, t time.Time) { q.From = t }), "Only pushes with a send time at or after this. RFC 3339 with a zone.", timeExample),
	row("until", optional, moment(func(q *pushFilter, t time.Time) { q.Until = t }), "Only pushes with a send time before this. RFC 3339 with a zone.", timeExample),
)

// list answers with a page of the tenant's pushes, by send time.
func (h *pushes) list(c *call) error {
	return list(c, &listParams, func(q pushFilter, after push.Position) ([]push.Push, *push.Position, error) {
		page, err := h.reader.List(c.r.Context(), c.caller.Tenant, q.Filter, after, q.size)
		return page.Pushes, page.Next, err
	}, func(all []push.Push, next string) any {
		showMessages(c.r.Context(), all)
		return pageView{viewsOf(all, viewOf), next}
	})
}
