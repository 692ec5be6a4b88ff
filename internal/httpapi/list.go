package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

const (
	defaultPageSize = "50"
	maxPageSize     = 500
	maxReason       = 1024
)

// pageView is one page of a list.
type pageView struct {
	Pushes        []*pushView `json:"pushes"`
	NextPageToken string      `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer pushes than page_size, or none."`
}

// pageParams is which page of a list is asked for.
type pageParams struct {
	size  int
	token string
}

// pushFilter is which pushes are asked for.
type pushFilter struct {
	push.Filter
	pageParams
}

var listParams = table[pushFilter]{fields: []field[pushFilter]{
	{"recipient", optional, text(func(q *pushFilter, s string) { q.Recipient = s }, 0, maxRecipient), "Only this recipient's.", "user-42"},
	{"status", optional, oneOf(func(q *pushFilter, s push.Status) { q.Status = s }, push.Statuses...), "Only those in this state.", nil},
	{"channel", optional, text(func(q *pushFilter, s string) { q.Channel = s }, 0, maxChannel), "Only those through this channel.", "push"},
	{"category", optional, text(func(q *pushFilter, s string) { q.Category = s }, 0, maxCategory), "Only those of this category.", "marketing"},
	{"campaign", optional, identifier(func(q *pushFilter, id uuid.UUID) { q.Campaign = id }), "Only those of this campaign.", exampleID},
	{"reason", optional, text(func(q *pushFilter, s string) { q.Reason = s }, 0, maxReason), "Only those with this last_error, word by word.", "the provider answered 404"},
	{"from", optional, moment(func(q *pushFilter, t time.Time) { q.From = t }), "Only those with a send time not before this. RFC 3339 with a zone.", timeExample},
	{"until", optional, moment(func(q *pushFilter, t time.Time) { q.Until = t }), "Only those with a send time before this. RFC 3339 with a zone.", timeExample},
	{"page_size", optional, integer(func(q *pushFilter, n int) { q.size = n }, 1, maxPageSize).or(defaultPageSize), "How many pushes to answer with, at most.", nil},
	{"page_token", optional, token(func(q *pushFilter, s string) { q.token = s }), "The next_page_token of the page before. It goes with the same filters.", nil},
}}

// listName tells lists with other filters apart.
func (q *pushFilter) listName() string {
	name := fmt.Sprintf("%q %q %q %q %s %s %s", q.Recipient, q.Channel, q.Category, q.Status, q.Campaign, stamp(q.From), stamp(q.Until))
	if q.Reason != "" { // tokens of lists without it stay good
		name += fmt.Sprintf(" %q", q.Reason)
	}
	return name
}

// pushCursor is a position in a list of pushes, as a page token holds it.
type pushCursor struct {
	SendAt int64 // Unix seconds
	ID     uuid.UUID
}

func cursorOf(p push.Position) pushCursor { return pushCursor{p.SendAt.Unix(), p.ID} }

func (c pushCursor) position() push.Position {
	return push.Position{SendAt: time.Unix(c.SendAt, 0).UTC(), ID: c.ID}
}

// list answers with a page of the tenant's pushes, by send time.
func (a *api) list(c *call) error {
	var (
		bad fieldErrors
		q   pushFilter
	)
	listParams.readQuery(c.r, &q, &bad)
	after := cursorOf(push.Position{})
	readPageToken(q.token, c.caller.Tenant, q.listName, &after, &bad)
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	page, err := a.svc.List(c.r.Context(), c.caller.Tenant, q.Filter, after.position(), q.size)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		v := pageView{Pushes: viewsOf(page.Pushes, viewOf)}
		if page.Next != nil {
			v.NextPageToken = pageToken(cursorOf(*page.Next), c.caller.Tenant, q.listName())
		}
		return a.answer(c.w, http.StatusOK, v)
	})
}
