package pushes

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// maxReason is the longest last_error in a filter, in bytes.
const maxReason = 1024

// pageView is a page of pushes.
type pageView struct {
	Pushes        []*pushView `json:"pushes"`
	NextPageToken string      `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer pushes than page_size, or none."`
}

// pushFilter selects pushes.
type pushFilter struct {
	push.Filter
	rest.PageParams
}

var listParams = rest.Pages(
	rest.Row("recipient", rest.Optional, rest.Text(func(q *pushFilter, s string) { q.Recipient = s }, 0, MaxRecipient), "Only entries of this recipient.", "user-42"),
	rest.Row("status", rest.Optional, rest.OneOf(func(q *pushFilter, s push.Status) { q.Status = s }, push.Statuses...), "Only pushes with this status.", nil),
	rest.Row("channel", rest.Optional, rest.Named(func(q *pushFilter, s string) { q.Channel = s }, 0, MaxChannel), "Only pushes on this channel.", "push"),
	rest.Row("category", rest.Optional, rest.Named(func(q *pushFilter, s string) { q.Category = s }, 0, MaxCategory), "Only pushes of this category.", "marketing"),
	rest.Row("campaign", rest.Optional, rest.Identifier(func(q *pushFilter, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", rest.ExampleID),
	rest.Row("reason", rest.Optional, rest.Text(func(q *pushFilter, s string) { q.Reason = s }, 0, maxReason), "Only pushes with exactly this last_error.", "the provider answered 404"),
	rest.Row("from", rest.Optional, rest.Moment(func(q *pushFilter, t time.Time) { q.From = t }), "Only pushes with a send time at or after this. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *pushFilter, t time.Time) { q.Until = t }), "Only pushes with a send time before this. RFC 3339 with a zone.", rest.TimeExample),
)

// list answers with a page of the tenant's pushes, by send time.
func (h *pushes) list(c *rest.Call) error {
	return rest.List(c, &listParams, func(q pushFilter, after push.Position) ([]push.Push, *push.Position, error) {
		page, err := h.reader.List(c.Request.Context(), c.Caller.Tenant, q.Filter, after, q.Size)
		return page.Pushes, page.Next, err
	}, func(all []push.Push, next string) any {
		showMessages(c.Request.Context(), all)
		return pageView{rest.ViewsOf(all, func(p push.Push) *pushView { return viewOf(h.texts, p) }), next}
	})
}

func (v pageView) AppendJSON(b []byte) []byte {
	b = append(slices.Grow(b, len(v.Pushes)*usualPush), `{"pushes":`...)
	b = appendAll(b, v.Pushes, func(p **pushView, b []byte) []byte { bulkhead.Yield(); return (*p).AppendJSON(b) })
	return append(appendText(b, `,"next_page_token":`, v.NextPageToken), '}')
}
