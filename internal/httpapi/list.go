package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// pageParams is which page of a list is asked for. The filter of a list embeds it.
type pageParams struct {
	size  int
	token string
}

func (p *pageParams) paging() *pageParams { return p }

// paged is a pointer to a filter.
type paged[Q any] interface {
	*Q
	paging() *pageParams
}

// pages is the table of a list's query: the rows of its filter, and which page is asked for.
func pages[Q any, PQ paged[Q]](filter ...field[Q]) table[Q] {
	return pagesOf[Q, PQ](maxPageSize, defaultPageSize, append(slices.Clip(filter), pageToken[Q, PQ](usualToken))...)
}

// pagesOf is the table of a list with pages of another size, whose filter ends with the row of the token.
func pagesOf[Q any, PQ paged[Q]](most int, preset string, filter ...field[Q]) table[Q] {
	size := field[Q]{"page_size", optional, integer(func(q *Q, n int) { PQ(q).paging().size = n }, 1, most).or(preset), "The maximum number of results.", nil}
	return table[Q]{fields: slices.Insert(slices.Clone(filter), len(filter)-1, size)}
}

// What tokens are: of any list, and of one that can be exported.
const (
	usualToken    = "The next_page_token of the previous page."
	exportedToken = "The next_page_token of the previous page, or the page_token of an exported line."
)

// pageToken is the row of the token.
func pageToken[Q any, PQ paged[Q]](origin string) field[Q] {
	return field[Q]{"page_token", optional, token(func(q *Q, s string) { PQ(q).paging().token = s }), origin + " Use it with the same filters.", nil}
}

// readPage reads which part of a list a request asks for: its filter, and the position behind which it begins. The zero position is the
// beginning.
func readPage[P, Q any, PQ paged[Q]](c *call, params *table[Q]) (q Q, after P, list string) {
	params.readQuery(c.r, &q, &c.bad)
	page := PQ(&q).paging()
	given := *page
	*page = pageParams{}
	list = listName(c.r.URL.Path, q)
	readPageToken(given.token, c.caller.Tenant, list, &after, &c.bad)
	*page = given
	return q, after, list
}

// listName tells lists apart, and those with other filters. An export has the name of its list.
func listName(path string, filter any) string {
	return fmt.Sprintf("%s %#v", strings.TrimSuffix(path, "/export"), filter)
}

// list answers with a page of a list: read returns what fits a filter, from behind a position, and where the next page begins; nil: nowhere.
func list[Q, P, T any, PQ paged[Q]](a *api, c *call, params *table[Q], read func(q Q, after P) ([]T, *P, error), view func(all []T, next string) any) error {
	q, after, list := readPage[P, Q, PQ](c, params)
	if err := c.ready(pageBytes); err != nil {
		return err
	}
	all, next, err := read(q, after)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		var token string
		if next != nil {
			token = sealToken(*next, c.caller.Tenant, list)
		}
		return a.answer(c.w, http.StatusOK, view(all, token))
	})
}

// pushFilter is which pushes are asked for.
type pushFilter struct {
	push.Filter
	pageParams
}

var listParams = pages(
	field[pushFilter]{"recipient", optional, text(func(q *pushFilter, s string) { q.Recipient = s }, 0, maxRecipient), "Only entries of this recipient.", "user-42"},
	field[pushFilter]{"status", optional, oneOf(func(q *pushFilter, s push.Status) { q.Status = s }, push.Statuses...), "Only pushes with this status.", nil},
	field[pushFilter]{"channel", optional, named(func(q *pushFilter, s string) { q.Channel = s }, 0, maxChannel), "Only pushes on this channel.", "push"},
	field[pushFilter]{"category", optional, named(func(q *pushFilter, s string) { q.Category = s }, 0, maxCategory), "Only pushes of this category.", "marketing"},
	field[pushFilter]{"campaign", optional, identifier(func(q *pushFilter, id uuid.UUID) { q.Campaign = id }), "Only entries of this campaign.", exampleID},
	field[pushFilter]{"reason", optional, text(func(q *pushFilter, s string) { q.Reason = s }, 0, maxReason), "Only pushes with exactly this last_error.", "the provider answered 404"},
	field[pushFilter]{"from", optional, moment(func(q *pushFilter, t time.Time) { q.From = t }), "Only pushes with a send time at or after this. RFC 3339 with a zone.", timeExample},
	field[pushFilter]{"until", optional, moment(func(q *pushFilter, t time.Time) { q.Until = t }), "Only pushes with a send time before this. RFC 3339 with a zone.", timeExample},
)

// list answers with a page of the tenant's pushes, by send time.
func (a *api) list(c *call) error {
	return list(a, c, &listParams, func(q pushFilter, after push.Position) ([]push.Push, *push.Position, error) {
		page, err := a.svc.List(c.r.Context(), c.caller.Tenant, q.Filter, after, q.size)
		return page.Pushes, page.Next, err
	}, func(all []push.Push, next string) any {
		showMessages(c.r.Context(), all)
		return pageView{viewsOf(all, viewOf), next}
	})
}

// orNowhere is a position, or nil for the zero one: there is no next page.
func orNowhere[P comparable](next P) *P {
	var none P
	if next == none {
		return nil
	}
	return &next
}
